#!/usr/bin/env python3
"""Names under which the project is published: .github/identity.env.

scripts/release/identity.py                   prints them
scripts/release/identity.py NAME=VALUE ...    replaces names, in every file of the repository that contains them
scripts/release/identity.py --final           fails while a name is a placeholder
"""

import re
import subprocess
import sys
from pathlib import Path

FILE = Path(".github/identity.env")
PLACEHOLDER = re.compile(r"\bOWNER\b|example\.com")


def names() -> dict[str, str]:
    """Return each name with its value."""
    lines = FILE.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def replace(old: str, new: str) -> list[str]:
    """Write `new` for `old` in all tracked text files; return their names."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout.decode().split("\0")
    changed = []
    for name in filter(None, listed):
        file = Path(name)
        if file.is_symlink() or not file.is_file():
            continue
        data = file.read_bytes()
        if old.encode() in data:
            file.write_bytes(data.replace(old.encode(), new.encode()))
            changed.append(name)
    return changed


def main(arguments: list[str]) -> None:
    if arguments == ["--final"]:
        left = [f"{name}={value}" for name, value in names().items() if PLACEHOLDER.search(value)]
        if left:
            sys.exit(f"{FILE} has placeholders: {', '.join(left)}. Set them: scripts/release/identity.py NAME=VALUE")
        return
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if not separator or name not in names():
            sys.exit(f"{argument}: write NAME=VALUE with one of {', '.join(names())}")
        print(f"{name}: {len(replace(names()[name], value))} files changed")
    if not arguments:
        print("\n".join(f"{name}={value}" for name, value in names().items()))


main(sys.argv[1:])
