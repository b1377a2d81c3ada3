"""Finds the files that the patterns of `topic_files` and `contracts` match."""

import glob
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.disk.regular_file import stat_now
from sluicegate.config.files.source import Path

KEY = "topic_files"
CONTRACTS = "contracts"
MOST_FILES = 1000
MOST_BYTES = 16 << 20
TEST_ENDINGS = (".test.yaml", ".test.yml")
"""The endings of the names of test case files (`sluicegate test`)."""


class TooManyFiles(Exception):
    """Raised for a pattern that matches more files than the proxy reads.

    The message contains the pattern and the number of files.
    """

    def __init__(self, pattern: str, count: int) -> None:
        super().__init__(f"{pattern} matches {count} files; {bound()}")


def bound() -> str:
    """Return the limit on all matched files together, in words."""
    return f"expected at most {MOST_FILES}, of {MOST_BYTES >> 20} MiB together"


def topic_files(patterns: Sequence[str], folder: FilePath, main: FilePath | None = None) -> list[FilePath]:
    """Return the files that the patterns match, each once. The files of one pattern are sorted by name.

    `main` is the file that contains the patterns, or None. It is never returned. Wildcards match neither names that
    begin with a dot, such as a ConfigMap's own folders, nor files with test cases. Has no deadline. Raises
    TooManyFiles.
    """
    own = _identity(main) if main is not None else None
    found: dict[FilePath, None] = {}
    for pattern in patterns:
        for file in _matched(str(folder / pattern)) if has_wildcards(pattern) else [folder / pattern]:
            if own is None or _identity(file) != own:
                found[file] = None
        if len(found) > MOST_FILES:
            raise TooManyFiles(str(folder / pattern), len(found))
    return list(found)


def patterns_in(data: dict[str, Any]) -> list[str]:
    """Return the patterns in a configuration's data, those of `topic_files` first."""
    return [pattern for key in (KEY, CONTRACTS) for _, pattern in items_in(data, key)]


def items_in(data: dict[str, Any], key: str = KEY) -> list[tuple[Path, str]]:
    """Return the pattern and the path of each item of `topic_files`, or of the list `key`."""
    value = data.get(key)
    items: list[tuple[Path, Any]] = (
        [((key, i), item) for i, item in enumerate(value)] if isinstance(value, list) else [((key,), value)]
    )
    named = [(path, item.get("path") if isinstance(item, dict) else item) for path, item in items]
    return [(path, text) for path, text in named if isinstance(text, str) and text and "\0" not in text]


def _matched(pattern: str) -> list[FilePath]:
    """Return the names that the pattern matches, except names that begin with a dot, which Path.glob would match.

    Raises TooManyFiles.
    """
    found: Iterator[str] = glob.iglob(pattern)  # noqa: PTH207  # Path.glob matches names with a dot in front
    names = (name for name in found if not name.endswith(TEST_ENDINGS))
    first = list(islice(names, MOST_FILES + 2))  # a pattern may also match the main file
    if len(first) > MOST_FILES + 1:
        raise TooManyFiles(pattern, sum(1 for _ in chain(first, names)))
    return [FilePath(name) for name in sorted(first)]


def has_wildcards(pattern: str) -> bool:
    """Return whether a pattern may match several files, or none."""
    return glob.has_magic(pattern)


def _identity(file: FilePath) -> tuple[int, int] | None:
    try:
        found = stat_now(file)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
