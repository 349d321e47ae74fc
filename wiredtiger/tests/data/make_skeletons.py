#!/usr/bin/env python3
"""Makes the skeletons beside it: data directories of real servers whose data files consist of
internal pages and lists of extents, present and past, the bare headers of their leaves, and else of
zeros, which a reader of internal pages must not notice.

    make_skeletons.py FOLDER

FOLDER holds NAME.tar.xz (one data directory below NAME/) and NAME.expected.json, which lists each
file's leaf pages. Written are NAME.tar.gz and NAME.expected.json, the latter without white space.
"""

import gzip
import json
import pathlib
import struct
import sys
import tarfile
import tempfile

UNIT = 4096
HEADER = 40
EXTENT_LIST, INTERNAL = 1, 6  # page types

CRC_TABLE = []
for value in range(256):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    CRC_TABLE.append(value)

here = pathlib.Path(__file__).parent


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def block_kept(file, at):
    """Length of the internal page or list of extents that starts here; 0 if none does."""
    if file[at + 24] not in (EXTENT_LIST, INTERNAL):
        return 0
    length, checksum = struct.unpack_from("<II", file, at + 28)
    if length == 0 or length % UNIT or at + length > len(file):
        return 0
    covered = length if file[at + 36] & 1 else 64
    block = file[at : at + 32] + bytes(4) + file[at + 36 : at + covered]
    return length if crc32c(block) == checksum else 0


def skeleton_of(file, leaves):
    out = bytearray(len(file))
    out[:UNIT] = file[:UNIT]
    at = UNIT
    while at < len(file):
        length = block_kept(file, at)
        out[at : at + length] = file[at : at + length]
        at += length or UNIT
    for offset, *_ in leaves:
        out[offset : offset + HEADER] = file[offset : offset + HEADER]
    return out


def without_leaves(folder, truth):
    for name, expected in truth["files"].items():
        path = folder / name
        path.write_bytes(skeleton_of(path.read_bytes(), expected["leaves"]))


def plain(entry):
    """Without owners and times, so that the archive is the same each time."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry


for archive in sorted(pathlib.Path(sys.argv[1]).rglob("*.tar.xz")):
    name = archive.name.removesuffix(".tar.xz")
    truth = json.loads(archive.with_name(f"{name}.expected.json").read_text())
    with tempfile.TemporaryDirectory() as temporary:
        with tarfile.open(archive) as original:
            original.extractall(temporary, filter="data")
        without_leaves(pathlib.Path(temporary) / name, truth)
        with (
            open(here / f"{name}.tar.gz", "wb") as out,
            gzip.GzipFile("", "wb", 9, out, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as skeleton,
        ):
            skeleton.add(f"{temporary}/{name}", name, filter=plain)
    short = json.dumps(truth, separators=(",", ":"), ensure_ascii=False)
    (here / f"{name}.expected.json").write_text(short + "\n")
