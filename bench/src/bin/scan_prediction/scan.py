"""Scans a table from its first key to its last, once a line comes on standard input.

    scan.py DIRECTORY TABLE

Prints `ready` when the database is open (the table is not), then the seconds that the scan took.
"""

import sys
import time

import wiredtiger

directory, table = sys.argv[1:]
connection = wiredtiger.wiredtiger_open(directory, "cache_size=64MB")
session = connection.open_session()
print("ready", flush=True)
sys.stdin.readline()
began = time.monotonic()
cursor = session.open_cursor(f"table:{table}")
step = cursor.next
while step() == 0:
    pass
print(time.monotonic() - began, flush=True)
connection.close()
