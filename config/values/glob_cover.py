"""Compares topic patterns: decides whether one pattern matches every name that another matches."""

from collections.abc import Iterable, Iterator

from sluicegate.config.values.topic_pattern import (
    begins_with,
    compile_expression,
    exact_name_of,
    parts_of,
    regular_expression_of,
)

_EVERYTHING = frozenset({"/.*/", "/.+/", "/^.*$/", "/(.*)/"})
_WILDCARDS = "*?["
_MAX_CHARACTERS = 300


def covers(first: str, later: str) -> bool:
    """Return whether `first` matches every name that `later` matches. Return False if this cannot be decided here."""
    if first == later or first in _EVERYTHING or (first and not first.strip("*")):
        return True
    if _is_expression(first) or _is_expression(later):
        return False
    return max(len(first), len(later)) <= _MAX_CHARACTERS and _glob_covers(first, later)


def is_within(match: str, scope: Iterable[str]) -> bool:
    """Return whether one pattern in `scope` provably matches every name that `match` matches.

    A regular expression is within a glob if all its matches begin with what precedes the glob's final `*`. Only an
    identical expression and single names are within a regular expression. Both arguments must be valid patterns.
    """
    return any(_is_inside(match, pattern) for pattern in scope)


def _is_inside(match: str, pattern: str) -> bool:
    if covers(pattern, match):
        return True
    name = exact_name_of(match)
    if _is_expression(pattern):
        return name is not None and compile_expression(regular_expression_of(pattern)).fullmatch(name) is not None
    stem = literal_prefix(pattern)
    return (
        _is_expression(match)
        and stem.isascii()
        and stem != pattern
        and not pattern[len(stem) :].strip("*")
        and begins_with(regular_expression_of(match), stem)
    )


def _is_expression(match: str) -> bool:
    return len(match) > 1 and match[0] == match[-1] == "/"


def may_share(first: str, later: str) -> bool:
    """Return whether a name may match both patterns. Return True if this cannot be decided here."""
    if _is_expression(first) or _is_expression(later) or max(len(first), len(later)) > _MAX_CHARACTERS:
        return True
    one, other = list(parts_of(first)), list(parts_of(later))
    pending, seen = [(0, 0)], {(0, 0)}
    while pending:
        i, j = pending.pop()
        if i == len(one) and j == len(other):
            return True
        for step in _steps(one[i] if i < len(one) else None, other[j] if j < len(other) else None):
            place = (i + step[0], j + step[1])
            if place not in seen:
                seen.add(place)
                pending.append(place)
    return False


def _steps(part: "_Part | None", other: "_Part | None") -> Iterator[tuple[int, int]]:
    """Yield how far to advance in two globs, given a part of each. None is the end of a glob."""
    if part == "*":
        yield 1, 0
    if other == "*":
        yield 0, 1
    if part is None or other is None:
        return
    if part == "*" or other == "*":
        yield (0, 1) if part == "*" else (1, 0)
    elif "?" in (part, other) or (frozenset(part) & frozenset(other)):
        yield 1, 1


def literal_prefix(match: str) -> str:
    """Return a pattern's literal prefix."""
    if _is_expression(match):
        return ""
    return match[: next((i for i, char in enumerate(match) if char in _WILDCARDS), len(match))]


_Part = str | frozenset[str]


def _glob_covers(first: str, later: str) -> bool:
    """Match `later` like a name.

    A `*` in `first` matches any characters and wildcards, and a `?` any single one except `*`.
    """
    glob = list(parts_of(first))
    places = _with_skipped(glob, {0})
    for part in parts_of(later):
        reached = set()
        for place in places:
            wanted = glob[place] if place < len(glob) else None
            if wanted == "*":
                reached.add(place)
            elif wanted is not None and _matches(wanted, part):
                reached.add(place + 1)
        places = _with_skipped(glob, reached)
    return len(glob) in places


def _matches(wanted: _Part, part: _Part) -> bool:
    """Return whether a part of one glob, other than `*`, matches everything that a part of another glob matches."""
    if part == "*":
        return False
    if wanted in ("?", part):
        return True
    held = part if isinstance(part, frozenset) else frozenset(part)
    return part != "?" and held <= (wanted if isinstance(wanted, frozenset) else frozenset(wanted))


def _with_skipped(glob: list[_Part], places: set[int]) -> set[int]:
    """Add the position after each `*`, because a `*` may match nothing."""
    found = set(places)
    for place in places:
        after = place
        while after < len(glob) and glob[after] == "*":
            after += 1
            found.add(after)
    return found


def probably_intended_glob(match: str) -> str | None:
    """Return the glob that was probably meant by one such as `orders.*`, whose dot is literal; None for others."""
    if _is_expression(match) or exact_name_of(match) is not None or not match.endswith(".*"):
        return None
    stem = match[:-2]
    return f"{stem}*" if stem and not any(char in stem for char in "*?[.") else None
