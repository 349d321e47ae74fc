#!/usr/bin/env python3
"""Prints the licences of all that is in the statically linked binary.

notices.py CRATE TARGET   reads what cargo, npm and dpkg have on this machine; downloads nothing.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

NAMES = re.compile(r"^(un)?licen[cs]e|^copying|^notice|^copyright", re.IGNORECASE)
# Linked in from Debian's packages, with where their licences are.
LIBRARIES = ["libc6-dev", "libelf-dev", "zlib1g-dev", "libgcc-s1"]
# Bundled into the report page.
PAGE_PACKAGES = ["uplot"]


def linked_crates(crate: str, target: str) -> list[dict]:
    """The packages that end up in the binary, by name."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"]
    metadata = json.loads(subprocess.check_output(command))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [p for p in packages if packages[p]["name"] == crate]
    seen = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if linked and dependency["pkg"] not in seen and not is_macro(packages[dependency["pkg"]]):
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    foreign = [packages[p] for p in seen if packages[p]["source"]]
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def is_macro(package: dict) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def licence_texts(folder: Path) -> list[str]:
    files = sorted(path for path in folder.iterdir() if NAMES.match(path.name) and path.is_file())
    return [path.read_text(errors="replace").strip() for path in files]


def main() -> None:
    crate, target = sys.argv[1:]
    # Many share a text to the letter: each is printed once, after the names of those it applies to.
    users: dict[str, list[str]] = {}
    for package in linked_crates(crate, target):
        name = f'{package["name"]} {package["version"]} ({package["license"]})'
        texts = licence_texts(Path(package["manifest_path"]).parent)
        for text in texts or [f'{package["license"]}; the crate has no text of it.']:
            users.setdefault(text, []).append(name)
    for name in PAGE_PACKAGES:
        for text in licence_texts(Path("web/node_modules") / name):
            users.setdefault(text, []).append(f"{name} (in reports)")
    for name in LIBRARIES:
        notice = Path("/usr/share/doc") / name / "copyright"
        text = notice.read_text().strip() if notice.exists() else "See Debian's source package."
        users.setdefault(text, []).append(f"Debian's {name}")
    try:
        for text, names in users.items():
            print("=" * 98, *names, "-" * 98, text, sep="\n", end="\n\n")
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
