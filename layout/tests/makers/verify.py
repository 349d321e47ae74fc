"""What the engine itself says of the files of a data directory, printed as it prints it.

    verify.py DIRECTORY [FILE...]

Opening a directory writes to it, so this is for a copy.
"""

import pathlib
import sys

import wiredtiger

directory = pathlib.Path(sys.argv[1])
files = sys.argv[2:] or sorted(
    path.name
    for path in directory.glob("*.wt")
    if not path.name.startswith("WiredTiger")
)
connection = wiredtiger.wiredtiger_open(str(directory))
session = connection.open_session()
for file in files:
    session.verify(f"file:{file}", "dump_address,dump_layout")
connection.close()
