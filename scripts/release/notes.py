#!/usr/bin/env python3
"""Prints the release notes of a version: its section of CHANGELOG.md. Fails if there is none, or it has no date.

scripts/release/notes.py VERSION
"""

import re
import sys
from pathlib import Path

HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?[^\n]*$", re.MULTILINE)


def notes_of(version: str, changelog: str) -> str:
    """Return the text between the version's heading and the next one."""
    headings = list(HEADING.finditer(changelog))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        if heading["version"] != version:
            continue
        if heading["date"] is None:
            sys.exit(f"CHANGELOG.md: the heading of {version} has no date; write ## [{version}] - YYYY-MM-DD")
        text = changelog[heading.end() : following.start() if following else len(changelog)]
        text = re.sub(r"^\[[^\]]+\]: \S+$", "", text, flags=re.MULTILINE).strip()  # link definitions at the end
        if not text:
            sys.exit(f"CHANGELOG.md: the section of {version} is empty")
        return text
    sys.exit(f"CHANGELOG.md has no section of {version}; write ## [{version}] - YYYY-MM-DD above it")


if len(sys.argv) != 2:
    sys.exit(__doc__)
print(notes_of(sys.argv[1], Path("CHANGELOG.md").read_text()))
