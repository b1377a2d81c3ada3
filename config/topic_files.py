"""Entries of `topics` out of further files (`topics_from`), so that teams own what holds for their topics.

They stand behind the configuration's own, file by file in the order of their names. The first match decides, so whoever
owns the configuration has the first word, and `defaults` the last one.
"""

import glob
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.yaml_source import Path, Problem, Source, printable, read_file

_KEY, _HELD = "topics_from", "topics"
MOST_FILES = 1000
_MOST_BYTES = 16 << 20


def include_topics(source: Source, folder: FilePath) -> None:
    """Put what the files hold into `source`; relative patterns begin at `folder`. What is wrong becomes a problem."""
    found = _files_of(source, folder)
    if len(found) > MOST_FILES or sum(map(_size, found)) > _MOST_BYTES:
        most = f"at most {MOST_FILES}, of {_MOST_BYTES >> 20} MiB together"
        source.problems.append(_problem(source, (_KEY,), f"leads to {len(found)} files; expected {most}"))
        return
    for file in found:
        _include(source, file)


def topic_files(patterns: Sequence[str], folder: FilePath, main: FilePath | None = None) -> list[FilePath]:
    """The files that patterns lead to, each once; those of one pattern in the order of their names.

    `main` is the file that the patterns stand in, and never one of them. Names that begin with a dot are not matched
    by wildcards, so that a ConfigMap's own folders are not.
    """
    own = _identity(main) if main is not None else None
    found: dict[FilePath, None] = {}
    for pattern in patterns:
        for file in _matched(str(folder / pattern)) if _has_wildcards(pattern) else [folder / pattern]:
            if own is None or _identity(file) != own:
                found[file] = None
    return list(found)


def patterns_in(data: dict[str, Any]) -> list[str]:
    """What a configuration's data says under `topics_from`, one pattern or several."""
    value = data.get(_KEY)
    given = value if isinstance(value, list) else [value]
    return [pattern for pattern in given if isinstance(pattern, str) and pattern and "\0" not in pattern]


def _files_of(source: Source, folder: FilePath) -> list[FilePath]:
    patterns = patterns_in(source.data)
    main = next(iter(source.digests), None)
    for i, pattern in enumerate(patterns):
        if _has_wildcards(pattern) and not topic_files([pattern], folder, main):
            path = (_KEY, i) if isinstance(source.data.get(_KEY), list) else (_KEY,)
            words = f"{source.place_of(path)}: {source.key_of(path)} {folder / pattern} leads to no file"
            source.remarks.append(printable(words))
    return topic_files(patterns, folder, main)


def _include(source: Source, file: FilePath) -> None:
    held = read_file(file)
    source.digests |= held.digests
    source.problems += held.problems
    if not held.readable:
        return
    for key in held.data:
        if key != _HELD:
            words = f"only {_HELD} may stand in a file of {_KEY}; everything else stands in {source.name}"
            source.problems.append(_problem(held, (key,), words))
    entries = held.data.get(_HELD) or []
    own = source.data.get(_HELD)
    if not isinstance(entries, list):
        source.problems.append(_problem(held, (_HELD,), "expected a list, each item beginning with `- match:`"))
        return
    if own is None:
        own = source.data[_HELD] = []
    if not isinstance(own, list):
        return  # which is told as it is
    first = len(own)
    own += entries
    source.elsewhere |= {(_HELD, first + i): (_HELD, i) for i in range(len(entries))}
    for path, place in held.places.items():
        if path[0] == _HELD and len(path) > 1 and isinstance(path[1], int):
            source.places[_HELD, first + path[1], *path[2:]] = place


def _problem(source: Source, path: Path, message: str) -> Problem:
    return Problem(source.key_of(path), source.place_of(path), message)


def _matched(pattern: str) -> list[FilePath]:
    """Path.glob would also match names that begin with a dot."""
    return [FilePath(name) for name in sorted(glob.glob(pattern))]  # noqa: PTH207


def _has_wildcards(pattern: str) -> bool:
    return glob.has_magic(pattern)


def _identity(file: FilePath) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _size(file: FilePath) -> int:
    try:
        return file.stat().st_size
    except (OSError, ValueError):
        return 0
