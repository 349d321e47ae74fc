"""A database under heavy writing, with a checkpoint each second, until its standard input closes.

    writers.py DIRECTORY SEED

Prints `ready` when the tables are there, and how much was written at the end. Keys are whole numbers
in `append` (grows) and `updated` (rewritten at random places), under 32 KB leaves.
"""

import random
import sys
import threading

from tables import ROWS, Database

THREADS = 2


def write(db, index, seed, stop, written):
    """Most rows are updates of old rows, the others are appended; some old ones go."""
    own = random.Random(seed + index)
    session = db.connection.open_session()
    updated = session.open_cursor("table:updated", None, "overwrite=true")
    append = session.open_cursor("table:append", None, "overwrite=true")
    key = ROWS + index
    values = [db.value() for _ in range(64)]
    while not stop.is_set():
        for _ in range(100):
            updated[own.randrange(ROWS)] = own.choice(values)
            append[key] = own.choice(values)
            append.set_key(key - 6000 * THREADS)
            append.remove()
            key += THREADS
        written[index] += 300
    session.close()


def checkpoints(db, stop, count):
    session = db.connection.open_session()
    while not stop.wait(1):
        session.checkpoint()
        count[0] += 1
    session.close()


def main():
    directory, seed = sys.argv[1:]
    db = Database(directory, int(seed))
    for name in ("updated", "append"):
        db.create(name)
        db.fill(name, range(ROWS))
    db.session.checkpoint()
    stop, written, count = threading.Event(), [0] * THREADS, [0]
    threads = [
        threading.Thread(target=write, args=(db, i, int(seed), stop, written))
        for i in range(THREADS)
    ]
    threads.append(threading.Thread(target=checkpoints, args=(db, stop, count)))
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    backup = None
    for line in sys.stdin:
        # A backup cursor, held or let go.
        if line.strip() == "backup":
            backup = db.session.open_cursor("backup:")
            print(*(name for name in iter_names(backup)), flush=True)
        else:
            backup.close()
            print("closed", flush=True)
    stop.set()
    for thread in threads:
        thread.join()
    print(f"{sum(written)} writes, {count[0]} checkpoints", flush=True)
    db.connection.close()


def iter_names(cursor):
    while cursor.next() == 0:
        yield cursor.get_key()


if __name__ == "__main__":
    main()
