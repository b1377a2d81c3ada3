"""Reads entries of `topics` from further files (`topic_files`), so that teams can own their topics' policies.

The entries are appended to those of the configuration, in the order of file names. The first match applies, so the
configuration's own entries take precedence, and `defaults` come last.

A file's scope limits its items to the topics in the scope. `exempt` and `quotas` are also appended if each item that
matches the file allows them. A vanished file keeps its entries (`included_files`).
"""

from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.disk.deadline import FileUnreadable, within_deadline
from sluicegate.config.disk.regular_file import stat_now
from sluicegate.config.files.included_files import (
    NO_ITEMS,
    ItemIdentities,
    forget,
    items_elsewhere,
    read_included,
    vanished_files,
)
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
from sluicegate.config.files.scopes import (
    GRANTED,
    MOST_GRANTED,
    TOPICS,
    is_granted,
    item_at,
    not_granted,
    problem_at,
    problems_beyond_scope,
    scopes_of,
    without_topics,
)
from sluicegate.config.files.source import Path, Source, printable

_OWNER = "owner"


def include_topics(source: Source, folder: FilePath) -> None:
    """Append the files' entries to `source.data`. Report errors in `source.problems`.

    Relative patterns start at `folder`.
    """
    scopes = scopes_of(source)
    files = files_of(source, folder, KEY)
    elsewhere = items_elsewhere(source, files, (TOPICS, *GRANTED))
    for file, items in files.items():
        held, included = _include(source, file, items, elsewhere)
        for scope in (scope for scope in map(scopes.get, items) if scope is not None):
            source.problems += problems_beyond_scope(source, scope, included)
        source.problems += without_topics(source, included)
        _give_owners(source, held, items, included.get(TOPICS, range(0)))


def files_of(source: Source, folder: FilePath, key: str) -> dict[FilePath, list[Path]]:
    """Return the files of `topic_files` or `contracts` (`key`), each with the items that match it.

    Vanished files from `source.previous` are also returned, and added to `source.missing`. If there are too many files
    or they are too large, reports this in `source.problems` and returns no files.
    """
    try:
        found, size = within_deadline((key, folder), lambda: _files_and_size(source, folder, key))
    except TooManyFiles as error:
        source.problems.append(problem_at(source, (key,), str(error)))
        return {}
    except FileUnreadable as error:
        source.problems.append(problem_at(source, (key,), f"{error.filename or folder}: {error.strerror}"))
        return {}
    if size > MOST_BYTES:
        words = f"{folder} contains {len(found)} files of {size >> 20} MiB; {bound()}"
        source.problems.append(problem_at(source, (key,), words))
        return {}
    return found


def _files_and_size(source: Source, folder: FilePath, key: str) -> tuple[dict[FilePath, list[Path]], int]:
    """Return the files, each with the items that match it, and their total size in bytes. Raises TooManyFiles."""
    main = next(iter(source.digests), None)
    found: dict[FilePath, list[Path]] = {}
    for path, pattern in items_in(source.data, key):
        files = topic_files([pattern], folder, main)
        if missing := vanished_files(source.previous, str(folder / pattern), files):
            source.missing |= {file: [] for file in missing}
            files = sorted({*files, *missing})
        if has_wildcards(pattern) and not files:
            words = f"{source.place_of(path)}: {source.key_of(path)} {folder / pattern} matches no file"
            source.remarks.append(printable(words))
        for file in files:
            found.setdefault(file, []).append(path)
        if (count := sum(file not in source.missing for file in found)) > MOST_FILES:
            raise TooManyFiles(str(folder / pattern), count)
    return found, sum(map(_size, found))


def _include(
    source: Source, file: FilePath, items: Sequence[Path], elsewhere: ItemIdentities
) -> tuple[Source, dict[str, range]]:
    """Append a file's items. Return the file, and the positions of the appended items by list.

    If the file is missing, items that are now in `elsewhere` are omitted.
    """
    held = read_included(source, file)
    source.problems += held.problems
    if not held.readable:
        return held, {}
    is_missing = file in source.missing
    for key in held.data:
        if key not in (TOPICS, _OWNER, *GRANTED):
            words = f"only {TOPICS} and {_OWNER} are allowed in a file of {KEY}; move other keys to {source.name}"
            source.problems.append(problem_at(held, (key,), words))
        elif key in GRANTED and not is_granted(source, items, key):
            source.problems.append(problem_at(held, (key,), not_granted(source, items, key)))
    lists = (TOPICS, *(key for key in GRANTED if is_granted(source, items, key)))
    left_out = elsewhere if is_missing else NO_ITEMS
    appended = {key: _append(source, held, key, file.parent, left_out) for key in lists if key in held.data}
    if is_missing:
        entries = [source.data[TOPICS][i] for i in appended.get(TOPICS, ())]
        source.missing[file] = [str(entry.get("match")) for entry in entries if isinstance(entry, dict)]
        if not any(appended.values()):
            forget(source, file)
    return held, appended


def _append(source: Source, held: Source, key: str, folder: FilePath, left_out: ItemIdentities) -> range:
    """Append the items of one list in a file, except those in `left_out`. Return their positions.

    `folder` is the file's folder.
    """
    entries = held.data.get(key) or []
    own = source.data.get(key)
    first = len(own) if isinstance(own, list) else 0
    if not isinstance(entries, list):
        begins = ", each item beginning with `- match:`" if key == TOPICS else ""
        source.problems.append(problem_at(held, (key,), f"expected a list{begins}"))
        return range(0)
    if key in GRANTED and len(entries) > MOST_GRANTED:
        words = f"expected at most {MOST_GRANTED} items in a file of {KEY}, found {len(entries)}"
        source.problems.append(problem_at(held, (key,), words))
        return range(0)
    if own is None:
        own = source.data[key] = []
    if not isinstance(own, list):
        return range(0)  # reported later, as a value of the wrong type
    appended = [i for i, entry in enumerate(entries) if not left_out.has(key, entry)]
    positions: dict[Any, int] = {i: first + count for count, i in enumerate(appended)}
    own += [entries[i] for i in appended]
    source.folders |= {(key, position): folder for position in positions.values()}
    source.elsewhere |= {(key, position): (key, i) for i, position in positions.items()}
    for path, place in held.places.items():
        if path[0] == key and len(path) > 1 and path[1] in positions:
            source.places[key, positions[path[1]], *path[2:]] = place
    return range(first, len(own))


def _give_owners(source: Source, held: Source, items: Sequence[Path], entries: range) -> None:
    """Set the owner of entries without one: the owner of their file, or of the first item that matches the file."""
    given: list[tuple[Any, Path, str]] = []
    if held.data.get(_OWNER) is not None:
        given.append((held.data[_OWNER], (_OWNER,), held.place_of((_OWNER,))))
    for path in items:
        item = item_at(source, path)
        if item.get(_OWNER) is not None:
            given.append((item[_OWNER], (*path, _OWNER), source.place_of((*path, _OWNER))))
    for i in entries if given else ():
        entry = source.data[TOPICS][i]
        if isinstance(entry, dict) and entry.get(_OWNER) is None:
            entry[_OWNER], source.elsewhere[TOPICS, i, _OWNER], source.places[TOPICS, i, _OWNER] = given[0]


def _size(file: FilePath) -> int:
    try:
        return stat_now(file).st_size
    except (OSError, ValueError):
        return 0
