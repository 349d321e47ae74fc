"""Makes tables of the same rows with different histories, and so different orders on disk.

    tables.py DIRECTORY MEGABYTES

Pages are as MongoDB has them for collections. Rows are large, so that scanning them from Python takes
little time beside the disk.
"""

import random
import sys
import threading

import wiredtiger

ROW_BYTES = 2000
THREADS = 8
COLLECTION = (
    "key_format=q,value_format=u,allocation_size=4KB,internal_page_max=4KB,leaf_page_max=32KB,"
    "leaf_value_max=64MB,memory_page_max=10m,split_pct=90"
)
# Much smaller than the tables, so that they are evicted, and so laid out, while they are written.
CONNECTION = "create,cache_size=64MB,eviction=(threads_min=4,threads_max=4)"

directory, megabytes = sys.argv[1], int(sys.argv[2])
rows = megabytes * 1_000_000 // ROW_BYTES
connection = wiredtiger.wiredtiger_open(directory, CONNECTION)
session = connection.open_session()
noise = random.Random(1).randbytes(1 << 22)


def value(source):
    start = source.randrange(len(noise) - ROW_BYTES)
    return noise[start : start + ROW_BYTES]


def bulk(name):
    session.create(f"table:{name}", COLLECTION)
    cursor = session.open_cursor(f"table:{name}", None, "bulk")
    source = random.Random(2)
    for key in range(rows):
        cursor[key] = value(source)
    cursor.close()


def append(name):
    session.create(f"table:{name}", COLLECTION)
    lock, keys = threading.Lock(), iter(range(rows))

    def work(number):
        own, source = connection.open_session(), random.Random(number)
        cursor = own.open_cursor(f"table:{name}")
        while True:
            with lock:
                key = next(keys, None)
            if key is None:
                break
            cursor[key] = value(source)
        own.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.checkpoint()


def update(name, share):
    """Random single rows."""
    source = random.Random(3)
    cursor = session.open_cursor(f"table:{name}")
    for _ in range(int(rows * share)):
        cursor[source.randrange(rows)] = value(source)
    cursor.close()
    session.checkpoint()


bulk("ordered")
append("append8")
bulk("updated_0.4pc")
update("updated_0.4pc", 0.004)
append("append8_updated_0.4pc")
update("append8_updated_0.4pc", 0.004)
# Moves a fifth of the leaves, as 0.4 % do where a leaf holds 55 rows.
bulk("updated_1.6pc")
update("updated_1.6pc", 0.016)
bulk("shuffled")
for _ in range(3):
    update("shuffled", 0.1)
connection.close()
