"""Computes an upper bound of the cost of jsonschema-rs from a JSON Schema and a value.

For each schema and each level below the value, the cost of one value at that level is the sum over all paths to it.
Paths are counted, not places: in a chain of thirty schemas, each of which applies the next one twice, there are a
billion paths. Only the most expensive of several alternative properties counts, so the bound of a large object is not
the sum over all properties.
"""

from array import array
from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import chain
from typing import Any, Final

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.json.count import DEEPEST, weighted_sum
from sluicegate.validation.rules.json.graph import SchemaNode, Unclear, schema_graph
from sluicegate.validation.rules.json.keywords import NONE, Cost, KeywordCosts, keyword_costs
from sluicegate.validation.rules.json.levels import (
    ENDLESS,
    EVERYWHERE,
    ITEMS,
    LISTED,
    NAMED,
    PARTS,
    SAME,
    LevelCosts,
)
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED

# The costs of parsing JSON into objects and freeing them (orjson).
_READ_ITEM, _READ_CONTAINER, _READ_KEY, _READ_UNIT, _READ_BYTE = 1.0, 6.0, 4.0, 0.3, 0.04
# The maximum cost of reading a byte of JSON, and the most items and number units per byte: 1e-5 is 75 units.
_READ_ANY_BYTE, _ITEMS_OF_BYTE, _UNITS_OF_BYTE = 3.0, 0.5, 16.0
# The items of a value are not counted if its size allows at most this many steps, because counting takes 2 µs per KiB.
_FEW = 1_000
_FIXED = 10
# The bytes of the root, and of one item per list and object, even if it is empty.
_PHANTOM_BYTES = 8
# jsonschema-rs searches its enclosing references. This is the cost per enclosing reference, at each level.
_WITHIN = 0.01
# The maximum number of edges and places to visit: about 0.1 s.
_MOST_WORK = 10_000_000 if is_compiled() else 200_000
# The cost of an explanation: of the error itself, with copies of the value and of the keyword's value.
_FIRST_ERROR = 500.0
_COPIES = 8
_MOST_EXPLAINED_BYTES = 1 << 20
_MOST_EXPLAINED_LEVELS = 24
_NO_BOUND: Final = Cost(ENDLESS, ENDLESS, ENDLESS)
_REPEATED: Final = ("unevaluatedProperties", "unevaluatedItems")


class JsonSchemaCost:
    """The cost of one schema. `is_known` is whether there is a bound."""

    def __init__(self, schema: Any, references: Mapping[str, Any]) -> None:
        self.is_known = True
        self._verdict: list[Cost] = [NONE]
        self._explanation: list[Cost] = [NONE]
        self._period = self._explanation_period = 1
        self._error_size = 0.0
        try:
            places = schema_graph(schema, references).places
            if places:
                self._compute(places)
        except (Unclear, ValueError, RecursionError, TypeError, AttributeError):
            self.is_known = False
        reading = Cost(_READ_ITEM, 0, _READ_UNIT)
        verdict = _weights([cost.plus(reading) for cost in self._verdict], self._period)
        self._verdict_weights = verdict
        explained = _weights([cost.plus(reading, _COPIES) for cost in self._explanation], self._explanation_period)
        self._explanation_weights = _both(verdict, explained)
        self._of_byte = self._of_any_byte()

    def steps(self, text: bytes) -> int:
        """Return an upper bound of the steps to read and validate a value. Uses only its size if that suffices."""
        if not self.is_known:
            return UNBOUNDED
        size = len(text) + _PHANTOM_BYTES
        if (steps := size * self._of_byte) <= _FEW or size * _READ_BYTE > INLINE_STEPS:
            return _whole(steps)
        weight = weighted_sum(text, self._verdict_weights, _READ_CONTAINER, _READ_KEY)
        return _whole(_FIXED + size * _READ_BYTE + weight)

    def explanation_steps(self, text: bytes) -> int:
        """Return an upper bound of the steps to find and build the first error."""
        if not self.is_known or len(text) > _MOST_EXPLAINED_BYTES:
            return UNBOUNDED
        first = _FIRST_ERROR + self._error_size + _COPIES * _READ_BYTE * len(text)
        weights = self._explanation_weights
        return _whole(first + weighted_sum(text, weights, _COPIES * _READ_CONTAINER, _COPIES * _READ_KEY))

    def _of_any_byte(self) -> float:
        most = NONE
        for cost in self._verdict:
            most = most.most(cost)
        return _READ_ANY_BYTE + most.items * _ITEMS_OF_BYTE + most.bytes + most.numbers * _UNITS_OF_BYTE

    def _compute(self, places: tuple[SchemaNode, ...]) -> None:
        costs = [keyword_costs(place.schema) for place in places]
        self._error_size = max(cost.error.items for cost in costs)
        order = _children_first(places)
        within = _longest_chain(places, order) * (DEEPEST + 1) * _WITHIN
        levels, edges = _levels(places, costs, order, within)
        self._verdict, self._explanation = [], []
        seen: dict[int, int] = {}
        for depth in range(DEEPEST + 1):
            if depth * edges > _MOST_WORK:
                break
            state, whole_state = levels.next()
            self._verdict.append(Cost(*(levels.verdict(part) for part in range(PARTS))))
            self._explanation.append(Cost(*(levels.explanation(part) for part in range(PARTS))))
            if depth > 1:
                if whole_state in seen:
                    self._period = self._explanation_period = depth - seen[whole_state]
                    return
                if state in seen and depth > _MOST_EXPLAINED_LEVELS:
                    self._period = depth - seen[state]
                    self._explanation.append(_NO_BOUND)
                    return
                seen[whole_state] = depth
                seen[state] = depth
        # Deeper levels may become ever more expensive. The deepest counted level represents all levels below it.
        self._verdict[DEEPEST:] = [_NO_BOUND]
        self._explanation[DEEPEST:] = [_NO_BOUND]


def _levels(
    places: tuple[SchemaNode, ...], costs: list[KeywordCosts], order: list[int], within: float
) -> tuple[LevelCosts, int]:
    """Return the object that computes the levels, and its work per level."""
    explained = _explained(places)
    own = [
        cost.own.plus(Cost(3 + within)) if any(keyword in place.schema for keyword in _REFERENCES) else cost.own
        for place, cost in zip(places, costs, strict=True)
    ]
    given = (
        _flat(own),
        _flat(cost.members for cost in costs),
        _flat(cost.inside for cost in costs),
        _flat(cost.error if at in explained else NONE for at, cost in enumerate(costs)),
        _flat(cost.error_inside if at in explained else NONE for at, cost in enumerate(costs)),
    )
    edges, begins = array("q"), array("q")
    for place in places:
        begins.append(len(edges))
        for kind, group in (
            *((SAME, group) for group in place.in_place),
            *((NAMED, place.named), (EVERYWHERE, place.everywhere), (LISTED, place.listed), (ITEMS, place.items)),
        ):
            if group:
                edges.extend((kind, len(group), *group))
    begins.append(len(edges))
    leading = array("q", (at for at in order if begins[at] < begins[at + 1]))
    repeats = bytes(any(keyword in place.schema for keyword in _REPEATED) for place in places)
    collects = bytes("anyOf" in place.schema or "oneOf" in place.schema for place in places)
    return LevelCosts(given, edges, begins, leading, repeats, collects), len(edges) + len(places)


def _flat(costs: Iterable[Cost]) -> "array[float]":
    return array("d", chain.from_iterable(costs))


_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def _children_first(places: tuple[SchemaNode, ...]) -> list[int]:
    """Return the places in an order in which each follows all places that apply to the same value.

    Raises Unclear for a cycle.
    """
    order: list[int] = []
    state = [0] * len(places)  # 1: started, 2: done
    for root in range(len(places)):
        waiting = [root]
        while waiting:
            at = waiting[-1]
            if state[at] == 0:
                state[at] = 1
                for group in places[at].in_place:
                    for below in group:
                        if state[below] == 1:
                            raise Unclear
                        if state[below] == 0:
                            waiting.append(below)
            else:
                waiting.pop()
                if state[at] == 1:
                    state[at] = 2
                    order.append(at)
    return order


def _longest_chain(places: tuple[SchemaNode, ...], order: list[int]) -> int:
    """Return the longest chain of references for the same value."""
    lengths = [0] * len(places)
    for at in order:
        longest = max((lengths[below] for group in places[at].in_place for below in group), default=0)
        lengths[at] = longest + any(keyword in places[at].schema for keyword in _REFERENCES)
    return max(lengths)


def _explained(places: tuple[SchemaNode, ...]) -> set[int]:
    """Return the places below an anyOf or oneOf. All errors of these places are collected."""
    found: set[int] = set()
    waiting = [at for at, place in enumerate(places) if place.is_alternative]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            place = places[at]
            for group in (*place.in_place, place.named, place.everywhere, place.listed, place.items):
                waiting.extend(group)
    return found


def _weights(costs: list[Cost], period: int) -> "array[float]":
    """Return the weights for each depth. `period` is the period of the levels that follow those with known costs."""
    known = len(costs)
    if period > 1:
        repeated = known - period
        costs = [costs[at] if at < known else costs[repeated + (at - repeated) % period] for at in range(DEEPEST)]
        costs.append(reduce(Cost.most, costs[-period:]))
    return _flat(costs)


def _both(one: "array[float]", other: "array[float]") -> "array[float]":
    """Return the sums of the two arrays. The last three numbers of the shorter one apply to all deeper levels."""
    longest = max(len(one), len(other))
    return array("d", map(sum, zip(_lengthened(one, longest), _lengthened(other, longest), strict=True)))


def _lengthened(weights: "array[float]", size: int) -> "array[float]":
    return weights + weights[-PARTS:] * ((size - len(weights)) // PARTS)


def _whole(steps: float) -> int:
    return UNBOUNDED if steps >= ENDLESS else int(steps) + 1
