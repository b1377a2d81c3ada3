"""Reads entries of `topics` from further files (`topic_files`), so that teams own the policies of their topics.

The entries are appended after those of the configuration, in the order of file names. The first match applies, so the
configuration's own entries take precedence, and `defaults` come last.
"""

from pathlib import Path as FilePath

from sluicegate.config.files.deadline import FileUnreadable, within_deadline
from sluicegate.config.files.patterns import (
    KEY,
    MOST_BYTES,
    TooManyFiles,
    bound,
    has_wildcards,
    patterns_in,
    topic_files,
)
from sluicegate.config.files.regular_file import stat_now
from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.source import Path, Problem, Source, printable

_HELD = "topics"


def include_topics(source: Source, folder: FilePath) -> None:
    """Append the entries of the files to `source.data`; report errors in `source.problems`.

    Relative patterns start at `folder`.
    """
    try:
        found, size = within_deadline((KEY, folder), lambda: _files_of(source, folder))
    except TooManyFiles as error:
        source.problems.append(_problem(source, (KEY,), str(error)))
        return
    except FileUnreadable as error:
        source.problems.append(_problem(source, (KEY,), f"{error.filename or folder}: {error.strerror}"))
        return
    if size > MOST_BYTES:
        words = f"{folder} leads to {len(found)} files of {size >> 20} MiB; {bound()}"
        source.problems.append(_problem(source, (KEY,), words))
        return
    for file in found:
        _include(source, file)


def _files_of(source: Source, folder: FilePath) -> tuple[list[FilePath], int]:
    """Return the files and their total size in bytes. Raises TooManyFiles."""
    patterns = patterns_in(source.data)
    main = next(iter(source.digests), None)
    for i, pattern in enumerate(patterns):
        if has_wildcards(pattern) and not topic_files([pattern], folder, main):
            path = (KEY, i) if isinstance(source.data.get(KEY), list) else (KEY,)
            words = f"{source.place_of(path)}: {source.key_of(path)} {folder / pattern} matches no file"
            source.remarks.append(printable(words))
    found = topic_files(patterns, folder, main)
    return found, sum(map(_size, found))


def _include(source: Source, file: FilePath) -> None:
    held = read_file(file)
    source.digests |= held.digests
    source.problems += held.problems
    if not held.readable:
        return
    for key in held.data:
        if key != _HELD:
            words = f"only {_HELD} is allowed in a file of {KEY}; move other keys to {source.name}"
            source.problems.append(_problem(held, (key,), words))
    entries = held.data.get(_HELD) or []
    own = source.data.get(_HELD)
    if not isinstance(entries, list):
        source.problems.append(_problem(held, (_HELD,), "expected a list, each item beginning with `- match:`"))
        return
    if own is None:
        own = source.data[_HELD] = []
    if not isinstance(own, list):
        return  # reported later, as a value of the wrong type
    first = len(own)
    own += entries
    source.folders |= {(_HELD, first + i): file.parent for i in range(len(entries))}
    source.elsewhere |= {(_HELD, first + i): (_HELD, i) for i in range(len(entries))}
    for path, place in held.places.items():
        if path[0] == _HELD and len(path) > 1 and isinstance(path[1], int):
            source.places[_HELD, first + path[1], *path[2:]] = place


def _problem(source: Source, path: Path, message: str) -> Problem:
    return Problem(source.key_of(path), source.place_of(path), message)


def _size(file: FilePath) -> int:
    try:
        return stat_now(file).st_size
    except (OSError, ValueError):
        return 0
