"""What the engine itself says of the files of a data directory, printed as it prints it.

    verify.py DIRECTORY WHAT [FILE...]

WHAT is "dump_address", "dump_layout" or both with a comma. Opening a directory writes to it, so this
is for a copy.
"""

import pathlib
import sys

import wiredtiger

directory, what = pathlib.Path(sys.argv[1]), sys.argv[2]
files = sys.argv[3:] or sorted(
    path.name
    for path in directory.glob("*.wt")
    if not path.name.startswith("WiredTiger")
)
connection = wiredtiger.wiredtiger_open(str(directory))
session = connection.open_session()
for file in files:
    session.verify(f"file:{file}", what)
connection.close()
