"""Which files `topics_from` leads to."""

import glob
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

KEY = "topics_from"


def topic_files(patterns: Sequence[str], folder: FilePath, main: FilePath | None = None) -> list[FilePath]:
    """The files that patterns lead to, each once; those of one pattern in the order of their names.

    `main` is the file that the patterns stand in, and never one of them. Names that begin with a dot are not matched
    by wildcards, so that a ConfigMap's own folders are not.
    """
    own = _identity(main) if main is not None else None
    found: dict[FilePath, None] = {}
    for pattern in patterns:
        for file in _matched(str(folder / pattern)) if has_wildcards(pattern) else [folder / pattern]:
            if own is None or _identity(file) != own:
                found[file] = None
    return list(found)


def patterns_in(data: dict[str, Any]) -> list[str]:
    """What a configuration's data says under `topics_from`, one pattern or several."""
    value = data.get(KEY)
    given = value if isinstance(value, list) else [value]
    return [pattern for pattern in given if isinstance(pattern, str) and pattern and "\0" not in pattern]


def _matched(pattern: str) -> list[FilePath]:
    """Path.glob would also match names that begin with a dot."""
    return [FilePath(name) for name in sorted(glob.glob(pattern))]  # noqa: PTH207


def has_wildcards(pattern: str) -> bool:
    """Whether it may lead to several files, or to none."""
    return glob.has_magic(pattern)


def _identity(file: FilePath) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
