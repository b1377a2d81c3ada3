"""Checks the scope of a `topic_files` item: the topics that its files may name, and the lists that they may contain."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluicegate.config.files.patterns import KEY, items_in
from sluicegate.config.files.source import Path, Problem, Source
from sluicegate.config.values.glob_cover import is_within, literal_prefix
from sluicegate.config.values.kinds import topic_pattern

TOPICS = "topics"
GRANTED = ("exempt", "quotas")
"""The lists that a file may contain only if each item that includes the file allows them (`allow`)."""
MOST_GRANTED = 100
"""The maximum number of items of such a list in one file."""
_MOST_NAMED = 3
_ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class Scope:
    """The patterns for topics that files may name, and the path of the key with these patterns."""

    path: Path
    patterns: tuple[str, ...]


def scopes_of(source: Source, key: str = KEY) -> dict[Path, Scope]:
    """Return the scope of each item of `topic_files`, or of `contracts`, that has a scope.

    An empty scope is reported as a problem, because it is probably a mistake.
    """
    found = {}
    for path, _ in items_in(source.data, key):
        item = item_at(source, path)
        if TOPICS not in item:
            continue
        given = item[TOPICS]
        at = (*path, TOPICS)
        if given is None:
            words = "the key is empty; name the topics, or omit the key"
            source.problems.append(problem_at(source, at, words))
        found[path] = Scope(at, tuple(pattern for pattern in _listed(given) if _is_valid(pattern)))
    return found


def item_at(source: Source, path: Path) -> Mapping[Any, Any]:
    """Return the item of `topic_files` or `contracts` at `path`, or an empty mapping if the item is only a path."""
    item = source.data[str(path[0])][path[1]] if len(path) > 1 else None
    return item if isinstance(item, dict) else {}


def is_granted(source: Source, items: Sequence[Path], key: str) -> bool:
    """Return whether each of the items allows the list `key` in its files."""
    return all(key in _listed(item_at(source, path).get(_ALLOW)) for path in items)


def not_granted(source: Source, items: Sequence[Path], key: str) -> str:
    """Return the advice for a message about a list that is not allowed."""
    path = next(path for path in items if not is_granted(source, [path], key))
    where = f"{source.key_of(path)} ({source.place_of(path)})"
    return f"{where} does not allow this key: add allow: [{key}] there, or move it to {source.name}"


def problems_beyond_scope(source: Source, scope: Scope, included: Mapping[str, range]) -> Iterator[Problem]:
    """Yield a problem for each included item that names topics outside the scope. `included` maps lists to ranges."""
    for path, pattern in _named_topics(source, included):
        if _is_valid(pattern) and not is_within(pattern, scope.patterns):
            yield problem_at(source, path, _words_of(source, scope, path, pattern))


def without_topics(source: Source, included: Mapping[str, range]) -> Iterator[Problem]:
    """Yield a problem for each exemption and each quota without topics, because a scope limits only topics."""
    for i in included.get("exempt", ()):
        if isinstance(source.data["exempt"][i], dict) and source.data["exempt"][i].get(TOPICS) is None:
            words = "an exemption in a file of topic_files needs topics: the patterns of the topics that it is for"
            yield problem_at(source, ("exempt", i), words)
    for i in included.get("quotas", ()):
        if isinstance(source.data["quotas"][i], dict) and source.data["quotas"][i].get("topic") is None:
            words = "a quota in a file of topic_files needs topic: quotas of clients count for all their topics"
            yield problem_at(source, ("quotas", i), words)


def _named_topics(source: Source, included: Mapping[str, range]) -> Iterator[tuple[Path, Any]]:
    """Yield each topic pattern and topic name in the included items, with its path."""
    for key, places in included.items():
        for i in places:
            item = source.data[key][i]
            if not isinstance(item, dict):
                continue
            if key == "exempt":
                given = item.get(TOPICS)
                at: list[Path] = [(key, i, TOPICS, k) for k in range(len(given))] if isinstance(given, list) else []
                yield from zip(at or [(key, i, TOPICS)], _listed(given), strict=False)
            else:
                names = ("match", "quarantine") if key == TOPICS else ("topic",)
                yield from (((key, i, name), item.get(name)) for name in names)


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _is_valid(pattern: Any) -> bool:
    """Return whether this is a valid topic pattern. Other values are reported later, as invalid."""
    try:
        return isinstance(pattern, str) and bool(topic_pattern(pattern))
    except ValueError:
        return False


def _words_of(source: Source, scope: Scope, path: Path, pattern: str) -> str:
    key = path[2]
    named = ", ".join(scope.patterns[:_MOST_NAMED]) + (", …" if len(scope.patterns) > _MOST_NAMED else "")
    words = f"{pattern} is not limited to the scope of this file, {named} ({source.place_of(scope.path)})"
    if key == "quarantine":
        return f"{words}; name a topic within the scope"
    if not scope.patterns:
        return words
    words = f'{words}; write {key}: "{scope.patterns[0]}", or a part of it'
    stem = literal_prefix(scope.patterns[0])
    if pattern[0] == "/" and stem and stem != scope.patterns[0]:
        words += f"; a regular expression must begin with its fixed text: /{re.escape(stem)}.../"
    return words


def problem_at(source: Source, path: Path, message: str) -> Problem:
    """Return a problem with the key and the place of `path`."""
    return Problem(source.key_of(path), source.place_of(path), message)
