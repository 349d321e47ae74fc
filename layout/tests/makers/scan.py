"""Reads a table from its first key to its last, once.

    scan.py DIRECTORY FILE
"""

import sys

import wiredtiger

directory, file = sys.argv[1:]
connection = wiredtiger.wiredtiger_open(directory, "cache_size=24MB")
cursor = connection.open_session().open_cursor(f"file:{file}")
print(sum(1 for _ in cursor), "rows")
connection.close()
