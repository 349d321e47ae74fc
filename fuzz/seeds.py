#!/usr/bin/env python3
"""Cuts what the fuzz targets start from out of the data directories in wiredtiger/tests/data.

    seeds.py FOLDER       writes FOLDER/TARGET/…
"""

import hashlib
import pathlib
import re
import struct
import sys
import tarfile

data = pathlib.Path(__file__).resolve().parent.parent / "wiredtiger/tests/data"
out = pathlib.Path(sys.argv[1])
UNIT = 4096
LARGEST_FILE = 48 << 10
TARGETS_OF_PAGE_TYPE = {1: ["block", "extents"], 6: ["block", "page"], 7: ["block", "metadata"]}


def write(target, seed):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


def texts(content):
    for text in re.findall(rb"[\x20-\x7e]{40,}", content):
        if b"allocation_size=" in text:
            write("config", text)
        for cookie in re.findall(rb'addr="([0-9a-f]+)"', text):
            write("cookie", bytes.fromhex(cookie.decode()))
            write("cookie", cookie)


def blocks(content):
    for at in range(UNIT, len(content), UNIT):
        page_type = content[at + 24]
        (length,) = struct.unpack_from("<I", content, at + 28)
        if page_type in TARGETS_OF_PAGE_TYPE and 0 < length <= LARGEST_FILE and content[at + 28 : at + 40].strip(b"\0"):
            for target in TARGETS_OF_PAGE_TYPE[page_type]:
                write(target, content[at : at + length].rstrip(b"\0"))


for archive in data.glob("*.tar.gz"):
    with tarfile.open(archive) as directory:
        for member in directory:
            if not member.isfile():
                continue
            content = directory.extractfile(member).read()
            texts(content)
            if member.name.endswith(".turtle"):
                write("turtle", content)
            if member.name.endswith(".wt"):
                blocks(content)
            if member.name.endswith(".wt") and len(content) <= LARGEST_FILE:
                write("lone", content[UNIT:])
                for root in range(1, len(content) // UNIT - 1):
                    if content[(root + 1) * UNIT + 24] == 6:
                        # Fixed-size parts come first, the lengths of the others last.
                        write("walk", bytes([root, 1, 0]) + content)
