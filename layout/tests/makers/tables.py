"""Makes a data directory of small tables with the `wiredtiger` module, each with its own history.

    tables.py DIRECTORY SEED [TABLE...]

Every table is made alone, so the names may be any choice of `TABLES`; without names it is all but the
large one. Prints the engine's version
and the compressors it has. Page settings are those MongoDB gives its collections and indexes.
"""

import random
import sys
import threading

import wiredtiger

COLLECTION = (
    "key_format=q,value_format=u,allocation_size=4KB,internal_page_max=4KB,leaf_page_max=32KB,"
    "leaf_value_max=64MB,memory_page_max=10m,split_pct=90"
)
INDEX = (
    "key_format=u,value_format=u,allocation_size=4KB,internal_page_max=16KB,leaf_page_max=16KB,"
    "prefix_compression=true"
)
# Small enough that tables are evicted, and so laid out, while they grow.
CONNECTION = "create,cache_size=24MB,eviction=(threads_min=4,threads_max=4),statistics=(fast)"
ROW_BYTES = 1000
ROWS = 12_000


class Database:
    """A connection, the session of the main thread, and a seeded source of values."""

    def __init__(self, directory, seed):
        self.directory = directory
        self.random = random.Random(seed)
        self.noise = self.random.randbytes(1 << 20)
        self.open()

    def open(self):
        self.connection = wiredtiger.wiredtiger_open(self.directory, CONNECTION)
        self.session = self.connection.open_session()

    def reopen(self):
        """Everything to disk and out of the cache."""
        self.connection.close()
        self.open()

    def value(self, size=ROW_BYTES):
        """Half noise, half zeros: compressors have something to do."""
        start = self.random.randrange(len(self.noise) - size)
        return self.noise[start : start + size // 2].ljust(size, b"\0")

    def create(self, name, config=COLLECTION, more=""):
        self.session.create(f"table:{name}", f"{config},{more}")

    def fill(self, name, keys, session=None, size=ROW_BYTES):
        session = session or self.session
        cursor = session.open_cursor(f"table:{name}", None, "overwrite=true")
        for key in keys:
            cursor[key] = self.value(size)
        cursor.close()

    def in_threads(self, work, count=8):
        """`work(session, index)` in `count` threads at once."""

        def run(index):
            session = self.connection.open_session()
            work(session, index)
            session.close()

        threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def remove(self, name, keys):
        cursor = self.session.open_cursor(f"table:{name}")
        for key in keys:
            cursor.set_key(key)
            cursor.remove()
        cursor.close()

    def truncate(self, name, first, last):
        start = self.session.open_cursor(f"table:{name}")
        stop = self.session.open_cursor(f"table:{name}")
        start.set_key(first)
        stop.set_key(last)
        self.session.truncate(None, start, stop, None)
        start.close()
        stop.close()


def append(db, name):
    db.create(name)
    db.fill(name, range(ROWS))


def append_8_threads(db, name):
    """One queue of ascending keys, eight threads that take from it."""
    db.create(name)
    keys = iter(range(ROWS))
    lock = threading.Lock()

    def taken():
        while True:
            with lock:
                key = next(keys, None)
            if key is None:
                return
            yield key

    db.in_threads(lambda session, _: db.fill(name, taken(), session))


def ranges_8_threads(db, name):
    db.create(name)
    share = ROWS // 8
    db.in_threads(
        lambda session, i: db.fill(name, range(i * share, (i + 1) * share), session)
    )


def large(db, name):
    """2 GiB, for benchmarks."""
    db.create(name)
    db.fill(name, range(2 << 20))


def hashed(db, name):
    db.create(name)
    db.fill(name, (db.random.getrandbits(62) for _ in range(ROWS)))


def updated(share):
    def make(db, name):
        append(db, name)
        db.session.checkpoint()
        db.fill(name, db.random.sample(range(ROWS), int(ROWS * share)))

    return make


def deleted_random(db, name):
    append(db, name)
    db.session.checkpoint()
    db.remove(name, db.random.sample(range(ROWS), ROWS // 3))


def deleted_ranges(db, name):
    """Ranges go, then new rows come into the holes."""
    append(db, name)
    db.session.checkpoint()
    for first in range(0, ROWS, 2000):
        db.remove(name, range(first, first + 700))
    db.session.checkpoint()
    db.fill(name, range(ROWS, ROWS + 2000))


def truncated(db, name):
    """Leaves that were never read are removed by a mark on their address. The mark stays on disk
    while someone may still ask for the time before, and so do leaves of which each row was removed."""
    db.create(name)
    for first in range(0, ROWS, 100):
        db.session.begin_transaction()
        db.fill(name, range(first, first + 100))
        db.session.commit_transaction("commit_timestamp=200")
    db.connection.set_timestamp("stable_timestamp=200,oldest_timestamp=200")
    db.reopen()
    db.connection.set_timestamp("stable_timestamp=200,oldest_timestamp=200")
    for first in range(1000, ROWS, 4000):
        db.session.begin_transaction()
        db.truncate(name, first, first + 1500)
        db.session.commit_transaction("commit_timestamp=210")
    db.session.begin_transaction()
    db.remove(name, range(3000, 3200))
    db.session.commit_transaction("commit_timestamp=210")
    db.connection.set_timestamp("stable_timestamp=210")
    statistics = db.session.open_cursor("statistics:")
    marked = statistics[wiredtiger.stat.conn.rec_page_delete_fast][2]
    print(f"{name}: {marked} leaves marked as deleted")
    statistics.close()


def truncated_for_good(db, name):
    """Without timestamps nobody can ask for the time before."""
    append(db, name)
    db.reopen()
    db.truncate(name, 3000, 7000)


def compacted(db, name):
    append(db, name)
    db.session.checkpoint()
    db.remove(name, [key for key in range(ROWS) if key % 5 > 1 and key < ROWS * 3 // 4])
    db.session.checkpoint()
    db.session.compact(f"table:{name}", "timeout=60")


def overflow_values(db, name):
    db.create(name, COLLECTION.replace("leaf_value_max=64MB", "leaf_value_max=2KB"))
    for key in range(3000):
        db.fill(name, [key], size=20_000 if key % 10 == 0 else 500)


def large_values(db, name):
    """Leaves of one document each, larger than the page maximum."""
    db.create(name)
    db.fill(name, range(150), size=60_000)


def bulk(db, name):
    db.create(name)
    cursor = db.session.open_cursor(f"table:{name}", None, "bulk")
    for key in range(ROWS):
        cursor[key] = db.value()
    cursor.close()


def empty(db, name):
    db.create(name)


def emptied(db, name):
    db.create(name)
    db.fill(name, range(500))
    db.session.checkpoint()
    db.remove(name, range(500))


def one_leaf(db, name):
    db.create(name)
    db.fill(name, range(5))


def negative_keys(db, name):
    db.create(name)
    db.fill(name, range(-3000, 3000))


def timestamps(db, name):
    """Versions at several times; the oldest that may be asked for lies before most of them."""
    db.create(name)
    for step in range(60):
        time = f"{100 + step:x}"
        db.session.begin_transaction()
        db.fill(name, range(step * 100, step * 100 + 150), size=600)
        db.session.commit_transaction(f"commit_timestamp={time}")
        if step == 5:
            db.connection.set_timestamp(f"oldest_timestamp={time},stable_timestamp={time}")
        if step % 20 == 19:
            db.connection.set_timestamp(f"stable_timestamp={time}")
            db.session.checkpoint()
    db.connection.set_timestamp(f"stable_timestamp={time}")


def rolled_back(db, name):
    append(db, name)
    db.session.checkpoint()
    db.session.begin_transaction()
    db.fill(name, range(0, ROWS, 50))
    db.session.rollback_transaction()
    db.fill(name, range(0, ROWS, 400))


def text_keys(db, name):
    db.create(name, INDEX.replace("key_format=u", "key_format=S"))
    for number in db.random.sample(range(20_000), 20_000):
        db.fill(name, [f"customer/{number:07d}/orders"], size=60)


def index(db, name, more=""):
    """Long keys at random places: internal pages become larger than one unit of allocation."""
    db.create(name, INDEX, more)
    common = db.noise[:90]
    db.fill(
        name,
        (common + db.random.randbytes(60) for _ in range(20_000)),
        size=8,
    )


def compressed(compressor, make):
    """`make`'s table under a compressor, which it is created with."""

    def with_compressor(db, name):
        create = db.create
        db.create = lambda name, config=COLLECTION, more="": create(
            name, config, f"{more},block_compressor={compressor}"
        )
        make(db, name)
        db.create = create

    return with_compressor


TABLES = {
    "append": append,
    "append_8_threads": append_8_threads,
    "ranges_8_threads": ranges_8_threads,
    "large": large,
    "hashed": hashed,
    "updated_0_4_percent": updated(0.004),
    "updated_4_percent": updated(0.04),
    "deleted_random": deleted_random,
    "deleted_ranges": deleted_ranges,
    "truncated_for_good": truncated_for_good,
    "compacted": compacted,
    "overflow_values": overflow_values,
    "large_values": large_values,
    "bulk": bulk,
    "empty": empty,
    "emptied": emptied,
    "one_leaf": one_leaf,
    "negative_keys": negative_keys,
    "rolled_back": rolled_back,
    "text_keys": text_keys,
    "index": index,
}
COMPRESSORS = ("snappy", "zlib", "zstd", "lz4")
for each in COMPRESSORS:
    TABLES[f"{each}_append"] = compressed(each, append)
    TABLES[f"{each}_updated"] = compressed(each, updated(0.004))
    TABLES[f"{each}_index"] = compressed(each, index)
# These move the time of the whole database, and the second must not see it move again.
TABLES["timestamps"] = timestamps
TABLES["truncated"] = truncated


def compressors(db):
    """Those that this build of the engine has."""
    found = []
    for name in COMPRESSORS:
        try:
            db.session.create(f"table:probe_{name}", f"block_compressor={name}")
            db.session.drop(f"table:probe_{name}")
            found.append(name)
        except wiredtiger.WiredTigerError:
            pass
    return found


def main():
    directory, seed, *names = sys.argv[1:]
    db = Database(directory, int(seed))
    found = compressors(db)
    print(wiredtiger.wiredtiger_version()[0], *found)
    missing = set(COMPRESSORS) - set(found)
    for name in names or (name for name in TABLES if name != "large"):
        if name.split("_")[0] not in missing:
            TABLES[name](db, name)
    db.connection.close()


if __name__ == "__main__":
    main()
