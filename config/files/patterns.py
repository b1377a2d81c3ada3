"""Which files `topic_files` and `contracts` lead to."""

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
"""The ends of the names of files of test cases (`sluicegate test`)."""


class TooManyFiles(Exception):
    """A pattern leads to more files than may be read; the text says which pattern, and to how many."""

    def __init__(self, pattern: str, count: int) -> None:
        super().__init__(f"{pattern} leads to {count} files; {bound()}")


def bound() -> str:
    """How much all patterns together may lead to, in words."""
    return f"expected at most {MOST_FILES}, of {MOST_BYTES >> 20} MiB together"


def topic_files(patterns: Sequence[str], folder: FilePath, main: FilePath | None = None) -> list[FilePath]:
    """Return the files that the patterns match, each once; those of one pattern sorted by name.

    `main` is the file that contains the patterns; it is never returned. Names that begin with a dot are not matched
    by wildcards, so that a ConfigMap's own folders are not, and neither are files of test cases. Without a deadline.
    Raises TooManyFiles.
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
    """Return the patterns of a configuration's data, those of `topic_files` first."""
    return [pattern for key in (KEY, CONTRACTS) for _, pattern in items_in(data, key)]


def items_in(data: dict[str, Any], key: str = KEY) -> list[tuple[Path, str]]:
    """Return the pattern of each item of `topic_files`, or of `contracts`, with the path of the item."""
    value = data.get(key)
    items: list[tuple[Path, Any]] = (
        [((key, i), item) for i, item in enumerate(value)] if isinstance(value, list) else [((key,), value)]
    )
    named = [(path, item.get("path") if isinstance(item, dict) else item) for path, item in items]
    return [(path, text) for path, text in named if isinstance(text, str) and text and "\0" not in text]


def _matched(pattern: str) -> list[FilePath]:
    """Path.glob would also match names that begin with a dot. Raises TooManyFiles, having kept none of them."""
    found: Iterator[str] = glob.iglob(pattern)  # noqa: PTH207  # Path.glob matches names with a dot in front
    names = (name for name in found if not name.endswith(TEST_ENDINGS))
    first = list(islice(names, MOST_FILES + 2))  # one of them may be the main file
    if len(first) > MOST_FILES + 1:
        raise TooManyFiles(pattern, sum(1 for _ in chain(first, names)))
    return [FilePath(name) for name in sorted(first)]


def has_wildcards(pattern: str) -> bool:
    """Whether it may lead to several files, or to none."""
    return glob.has_magic(pattern)


def _identity(file: FilePath) -> tuple[int, int] | None:
    try:
        found = stat_now(file)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
