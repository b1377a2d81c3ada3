"""Reads entries of `topics` from further files (`topic_files`), so that teams own the policies of their topics.

The entries are appended after those of the configuration, in the order of file names. The first match applies, so the
configuration's own entries take precedence, and `defaults` come last.

A file's scope is checked here: an entry reaches no topic outside of it, nor does its dead-letter topic.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.files.deadline import FileUnreadable, within_deadline
from sluicegate.config.files.patterns import (
    KEY,
    MOST_BYTES,
    MOST_FILES,
    TooManyFiles,
    bound,
    has_wildcards,
    items_in,
    topic_files,
)
from sluicegate.config.files.regular_file import stat_now
from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.source import Path, Problem, Source, printable
from sluicegate.config.values.glob_cover import beginning, is_within
from sluicegate.config.values.kinds import topic_pattern

_HELD = "topics"
_OWNER = "owner"
_MOST_NAMED = 3


def include_topics(source: Source, folder: FilePath) -> None:
    """Append the entries of the files to `source.data`; report errors in `source.problems`.

    Relative patterns start at `folder`.
    """
    try:
        scopes = _scopes_of(source)
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
    for file, items in found.items():
        own = range(len(source.data.get(_HELD) or ()))
        held = _include(source, file)
        entries = range(len(own), len(source.data.get(_HELD) or ()))
        for scope in (scope for scope in map(scopes.get, items) if scope is not None):
            source.problems += _beyond(source, scope, entries)
        _give_owners(source, held, items, entries)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The patterns of the topics that files may have entries for, and the path of the key."""

    path: Path
    patterns: tuple[str, ...]


def _scopes_of(source: Source) -> dict[Path, _Scope]:
    """Return the scope of each item of `topic_files` that has one. An empty scope is a problem: it may be a mistake."""
    found = {}
    for path, _ in items_in(source.data):
        item = source.data[KEY][path[1]] if len(path) > 1 else None
        if not isinstance(item, dict) or _HELD not in item:
            continue
        given = item[_HELD]
        at = (*path, _HELD)
        if given is None:
            source.problems.append(_problem(source, at, "it is empty; name the topics, or leave the key out"))
        patterns = given if isinstance(given, list) else [given]
        found[path] = _Scope(at, tuple(pattern for pattern in patterns if _is_valid(pattern)))
    return found


def _is_valid(pattern: Any) -> bool:
    """Whether it is a pattern of topics; anything else is reported later, as an invalid value."""
    try:
        return isinstance(pattern, str) and bool(topic_pattern(pattern))
    except ValueError:
        return False


def _files_of(source: Source, folder: FilePath) -> tuple[dict[FilePath, list[Path]], int]:
    """Return the files, each with the items that lead to it, and their size in bytes. Raises TooManyFiles."""
    main = next(iter(source.digests), None)
    found: dict[FilePath, list[Path]] = {}
    for path, pattern in items_in(source.data):
        files = topic_files([pattern], folder, main)
        if has_wildcards(pattern) and not files:
            words = f"{source.place_of(path)}: {source.key_of(path)} {folder / pattern} matches no file"
            source.remarks.append(printable(words))
        for file in files:
            found.setdefault(file, []).append(path)
        if len(found) > MOST_FILES:
            raise TooManyFiles(str(folder / pattern), len(found))
    return found, sum(map(_size, found))


def _include(source: Source, file: FilePath) -> Source:
    """Append the entries of a file; return the file."""
    held = read_file(file)
    source.digests |= held.digests
    source.problems += held.problems
    if not held.readable:
        return held
    for key in held.data:
        if key not in (_HELD, _OWNER):
            words = f"only {_HELD} and {_OWNER} are allowed in a file of {KEY}; move other keys to {source.name}"
            source.problems.append(_problem(held, (key,), words))
    entries = held.data.get(_HELD) or []
    own = source.data.get(_HELD)
    if not isinstance(entries, list):
        source.problems.append(_problem(held, (_HELD,), "expected a list, each item beginning with `- match:`"))
        return held
    if own is None:
        own = source.data[_HELD] = []
    if not isinstance(own, list):
        return held  # reported later, as a value of the wrong type
    first = len(own)
    own += entries
    source.folders |= {(_HELD, first + i): file.parent for i in range(len(entries))}
    source.elsewhere |= {(_HELD, first + i): (_HELD, i) for i in range(len(entries))}
    for path, place in held.places.items():
        if path[0] == _HELD and len(path) > 1 and isinstance(path[1], int):
            source.places[_HELD, first + path[1], *path[2:]] = place
    return held


def _give_owners(source: Source, held: Source, items: Sequence[Path], entries: range) -> None:
    """Give the entries without an owner that of their file, else that of the first item which leads to the file."""
    given: list[tuple[Any, Path, str]] = []
    if held.data.get(_OWNER) is not None:
        given.append((held.data[_OWNER], (_OWNER,), held.place_of((_OWNER,))))
    for path in items:
        item = source.data[KEY][path[1]] if len(path) > 1 else None
        if isinstance(item, dict) and item.get(_OWNER) is not None:
            given.append((item[_OWNER], (*path, _OWNER), source.place_of((*path, _OWNER))))
    for i in entries if given else ():
        entry = source.data[_HELD][i]
        if isinstance(entry, dict) and entry.get(_OWNER) is None:
            entry[_OWNER], source.elsewhere[_HELD, i, _OWNER], source.places[_HELD, i, _OWNER] = given[0]


def _beyond(source: Source, scope: _Scope, entries: range) -> Iterator[Problem]:
    """Yield a problem for each of the entries that reaches beyond the scope. Every item that leads to a file counts."""
    for i in entries:
        entry = source.data[_HELD][i]
        for key in ("match", "quarantine") if isinstance(entry, dict) else ():
            pattern = entry.get(key)
            if _is_valid(pattern) and not is_within(pattern, scope.patterns):
                yield _problem(source, (_HELD, i, key), _words_of(source, scope, key, pattern))


def _words_of(source: Source, scope: _Scope, key: str, pattern: str) -> str:
    named = ", ".join(scope.patterns[:_MOST_NAMED]) + (", …" if len(scope.patterns) > _MOST_NAMED else "")
    words = f"{pattern} reaches beyond the scope of this file, {named} ({source.place_of(scope.path)})"
    if key != "match":
        return f"{words}; write the name of a topic within it"
    if not scope.patterns:
        return words
    words = f'{words}; write match: "{scope.patterns[0]}", or a part of it'
    stem = beginning(scope.patterns[0])
    if pattern[0] == "/" and stem and stem != scope.patterns[0]:
        words += f"; a regular expression must begin with its fixed text: /{re.escape(stem)}.../"
    return words


def _problem(source: Source, path: Path, message: str) -> Problem:
    return Problem(source.key_of(path), source.place_of(path), message)


def _size(file: FilePath) -> int:
    try:
        return stat_now(file).st_size
    except (OSError, ValueError):
        return 0
