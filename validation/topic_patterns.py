"""Finds the first of many patterns that matches a topic name, by matching all of them at once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluicegate.config.values.topic_pattern import compile_expression, exact_name_of, re2_options, regular_expression_of

if TYPE_CHECKING:
    import re2

# The memory for compiled patterns and RE2's cache.
_MAX_BYTES = 16 << 20
_ANYTHING = "(?s).*"


class TopicPatterns:
    """A matcher of many patterns, in time linear in the length of the name. Thread-safe.

    RE2 returns no match if it lacks the memory for all patterns at once. A last pattern that matches everything makes
    this case recognisable. In this case, or if there are too many patterns for one set, patterns are matched one by
    one.
    """

    def __init__(self, matches: Sequence[str]) -> None:
        self._exact: dict[str, int] = {}
        self._places: list[int] = []
        expressions: list[str] = []
        for place, match in enumerate(matches):
            exact = exact_name_of(match)
            if exact is not None:
                self._exact.setdefault(exact, place)
            else:
                expressions.append(regular_expression_of(match))
                self._places.append(place)
        self._set = _set_of(expressions) if expressions else None
        self._one_by_one = [compile_expression(expression) for expression in expressions]

    def first_match(self, name: str) -> int | None:
        """Return the index of the first pattern that matches the whole of `name`, or None."""
        place = self._exact.get(name)
        if not self._places:
            return place
        found = self._first_of_many(name)
        if found is None or place is None:
            return place if found is None else found
        return min(place, found)

    def _first_of_many(self, name: str) -> int | None:
        if self._set is not None:
            matched = self._set.Match(name)
            if matched:
                index = min(matched)
                return self._places[index] if index < len(self._places) else None
        return next(
            (place for place, one in zip(self._places, self._one_by_one, strict=True) if one.fullmatch(name)), None
        )


def _set_of(expressions: Sequence[str]) -> "re2.Set | None":
    """Return a set of all expressions plus a last one that matches everything; None if there are too many."""
    import re2  # noqa: PLC0415  # 3 MB only for expressions

    found = re2.Set.FullMatchSet(re2_options(_MAX_BYTES))
    try:
        for expression in (*expressions, _ANYTHING):
            found.Add(expression)
        found.Compile()
    except re2.error:
        return None
    return found
