#!/usr/bin/env python3
"""Half reads, half updates of random rows of a WiredTiger table; prints operations per second as JSON.

Needs the Python package `wiredtiger`. The table is made anew in a folder that is removed at the end.
Settings come from the environment: CACHE_MIB, LEAF_KIB, COMPRESSOR, DIRTY_TRIGGER, SEEKSCOPE_SEED;
ROWS and SECONDS say how much is done.
"""

import json
import os
import random
import tempfile
import time

from wiredtiger import wiredtiger_open


def setting(name, default):
    return os.environ.get(name, default)


def main():
    rows, seconds = int(setting("ROWS", "40000")), float(setting("SECONDS", "3"))
    rng = random.Random(int(setting("SEEKSCOPE_SEED", "1")))
    trigger = int(setting("DIRTY_TRIGGER", "20"))
    words = [("%08x" % rng.getrandbits(32)) * 8 for _ in range(1000)]
    with tempfile.TemporaryDirectory(dir=setting("DATA", None)) as home:
        connection = wiredtiger_open(
            home,
            f"create,cache_size={setting('CACHE_MIB', '4')}M,"
            f"eviction_dirty_trigger={trigger},eviction_dirty_target={max(1, trigger // 2)}",
        )
        session = connection.open_session()
        session.create(
            "table:rows",
            f"key_format=q,value_format=S,leaf_page_max={setting('LEAF_KIB', '32')}KB,"
            f"block_compressor={setting('COMPRESSOR', 'none').replace('none', '')}",
        )
        cursor = session.open_cursor("table:rows")
        value = lambda: "".join(rng.choices(words, k=8))
        for key in range(rows):
            cursor[key] = value()
        session.checkpoint()
        operations, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            for _ in range(100):
                key = rng.randrange(rows)
                cursor.set_key(key)
                cursor.search()
                if rng.random() < 0.5:
                    cursor.get_value()
                else:
                    cursor.set_value(value())
                    cursor.update()
                cursor.reset()
            operations += 100
        elapsed = time.perf_counter() - begun
        connection.close()
    print(json.dumps({"operations_per_s": operations / elapsed, "rows": rows}))


main()
