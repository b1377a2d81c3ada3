"""Finds topic patterns that are shadowed by an earlier one."""

from sluicegate.config.values.topic_pattern import exact_name_of

_EVERYTHING = frozenset({"/.*/", "/.+/", "/^.*$/", "/(.*)/"})
_WILDCARDS = "*?["
_MAX_CHARACTERS = 300


def covers(first: str, later: str) -> bool:
    """Whether every name that `later` matches is matched by `first` too; False if that is not decidable here."""
    if first == later or first in _EVERYTHING or (first and not first.strip("*")):
        return True
    if _is_expression(first) or _is_expression(later) or "[" in first or "[" in later:
        return False
    return max(len(first), len(later)) <= _MAX_CHARACTERS and _glob_covers(first, later)


def _is_expression(match: str) -> bool:
    return len(match) > 1 and match[0] == match[-1] == "/"


def beginning(match: str) -> str:
    """Return the literal prefix of a pattern."""
    if _is_expression(match):
        return ""
    return match[: next((i for i, char in enumerate(match) if char in _WILDCARDS), len(match))]


def _glob_covers(first: str, later: str) -> bool:
    """Match `later` like a name: a `*` in `first` matches any characters and wildcards, a `?` any one but `*`."""
    places = _with_skipped(first, {0})
    for char in later:
        reached = set()
        for place in places:
            wanted = first[place] if place < len(first) else None
            if wanted == "*":
                reached.add(place)
            elif char != "*" and wanted in ("?", char):
                reached.add(place + 1)
        places = _with_skipped(first, reached)
    return len(first) in places


def _with_skipped(glob: str, places: set[int]) -> set[int]:
    """Add the positions after each `*`, which may match nothing."""
    found = set(places)
    for place in places:
        while place < len(glob) and glob[place] == "*":
            place += 1  # noqa: PLW2901
            found.add(place)
    return found


def misses_dashes(match: str) -> str | None:
    """Return the glob that was perhaps meant by one like `orders.*` (its dot is literal); None for other patterns."""
    if _is_expression(match) or exact_name_of(match) is not None or not match.endswith(".*"):
        return None
    stem = match[:-2]
    return f"{stem}*" if stem and not any(char in stem for char in "*?[.") else None
