"""An upper bound of what a JSON Schema costs jsonschema-rs for a value, computed from both.

Of each schema: what it costs for one value that lies so many levels below the value it is applied to, by all ways that
lead there. Ways are counted, not places: a schema that applies the next twice, thirty times over, is a billion. Of
properties that exclude each other only the most expensive counts, so the bound of a large object is not the sum of all.
"""

from collections.abc import Mapping
from typing import Any, Final

from sluicegate.validation.rules.json_count import DEEPEST, JsonCount
from sluicegate.validation.rules.json_schema_graph import Place, Unclear, schema_graph
from sluicegate.validation.rules.json_schema_keywords import NONE, Cost, KeywordCosts, keyword_costs
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED

# What reading a text into objects and freeing them costs: orjson.
_READ_ITEM, _READ_CONTAINER, _READ_KEY, _READ_UNIT, _READ_BYTE = 1.0, 6.0, 4.0, 0.3, 0.04
# The most that any byte of a text costs to read, and how many items and units of numbers it can be: 1e-5 is 75 units.
_READ_ANY_BYTE, _ITEMS_OF_BYTE, _UNITS_OF_BYTE, _UNITS_OF_PLAIN_BYTE = 3.0, 0.5, 16.0, 2.5
_FIXED = 10
# The root, and an item that every list and object is counted with, if it is empty.
_PHANTOM_BYTES = 8
# jsonschema-rs looks through the references that it is within: this for each of them at each level.
_WITHIN = 0.01
_ENDLESS: Final = 1e15
_MOST_WORK = 400_000
# Of an explanation: the error itself, with copies of the value and of the keyword's value.
_FIRST_ERROR = 500.0
_COPIES = 8
_MOST_EXPLAINED_BYTES = 1 << 20
_REPEATED: Final = ("unevaluatedProperties", "unevaluatedItems")


class JsonSchemaCost:
    """Of one schema. `is_known`: whether there is any bound."""

    def __init__(self, schema: Any, references: Mapping[str, Any]) -> None:
        self.is_known = True
        self._verdict: list[Cost] = [NONE]
        self._explanation: list[Cost] = [NONE]
        self._period = 1
        self._error_size = 0.0
        try:
            places = schema_graph(schema, references).places
            if places:
                self._compute(places)
        except (Unclear, ValueError, RecursionError, TypeError, AttributeError):
            self.is_known = False
        self._of_byte = self._of_any_byte(_UNITS_OF_BYTE)
        self._of_plain_byte = self._of_any_byte(_UNITS_OF_PLAIN_BYTE)

    def steps(self, text: bytes) -> int:
        """Return an upper bound of the steps to read a text and validate it: from its size alone if that is enough."""
        if not self.is_known:
            return UNBOUNDED
        size = len(text) + _PHANTOM_BYTES
        if (steps := size * self._of_byte) <= INLINE_STEPS:
            return int(steps)
        if (steps := size * self._of_plain_byte) <= INLINE_STEPS and b"e-" not in text and b"E-" not in text:
            return int(steps)
        if size * _READ_BYTE > INLINE_STEPS:
            return _whole(size * self._of_byte)
        count = JsonCount(text)
        return _whole(_reading(text, count) + self._sum(count, self._verdict))

    def explanation_steps(self, text: bytes) -> int:
        """Return an upper bound of the steps to find the first error and all that it is made of."""
        if not self.is_known or len(text) > _MOST_EXPLAINED_BYTES:
            return UNBOUNDED
        count = JsonCount(text)
        first = _FIRST_ERROR + self._error_size + _COPIES * _reading(text, count)
        return _whole(first + self._sum(count, self._verdict) + self._sum(count, self._explanation))

    def _sum(self, count: JsonCount, costs: list[Cost]) -> float:
        total = 0.0
        for depth in range(count.levels):
            cost = costs[depth] if depth < len(costs) else costs[depth - self._period]
            if depth >= len(costs):
                costs.append(cost)
            total += (
                cost.items * count.items(depth)
                + cost.bytes * count.string_bytes(depth)
                + cost.numbers * count.number_units(depth)
            )
        return total

    def _of_any_byte(self, units: float) -> float:
        most = NONE
        for cost in self._verdict:
            most = most.most(cost)
        return _READ_ANY_BYTE + most.items * _ITEMS_OF_BYTE + most.bytes + most.numbers * units

    def _compute(self, places: tuple[Place, ...]) -> None:
        costs = [keyword_costs(place.schema) for place in places]
        self._error_size = max(cost.error.items for cost in costs)
        order = _children_first(places)
        within = _longest_chain(places, order) * (DEEPEST + 1) * _WITHIN
        levels = _Levels(places, costs, order, within, _explained(places))
        seen: dict[int, int] = {}
        work = 0
        while len(levels.verdict) <= DEEPEST:
            state = levels.next()
            depth = len(levels.verdict) - 1
            if depth > 1 and state in seen:
                self._period = depth - seen[state]
                break
            if depth > 1:
                seen[state] = depth
            work += len(places)
            if work > _MOST_WORK and len(levels.verdict) <= DEEPEST:
                levels.verdict.append(Cost(_ENDLESS, _ENDLESS, _ENDLESS))
                levels.explanation.append(Cost(_ENDLESS, _ENDLESS, _ENDLESS))
                break
        self._verdict, self._explanation = levels.verdict, levels.explanation


class _Levels:
    """The costs of a value at each level, of which each follows from the one before. `verdict`: those of the root."""

    def __init__(
        self, places: tuple[Place, ...], costs: list[KeywordCosts], order: list[int], within: float, explained: set[int]
    ) -> None:
        self.verdict: list[Cost] = []
        self.explanation: list[Cost] = []
        self._places = places
        self._inner = [at for at in order if _leads_on(places[at])]
        self._own = [
            [cost.own for cost in costs],
            [cost.inside.plus(cost.members) for cost in costs],
            [cost.inside for cost in costs],
        ]
        for at, place in enumerate(places):
            if any(keyword in place.schema for keyword in _REFERENCES):
                self._own[0][at] = self._own[0][at].plus(Cost(3 + within))
        self._error = [
            [one.error if at in explained else NONE for at, one in enumerate(costs)],
            [one.error_inside if at in explained else NONE for at, one in enumerate(costs)],
        ]
        self._validated: list[Cost] = []
        self._errors: list[Cost] = []

    def next(self) -> int:
        """Go one level down; return what stands for all that follows."""
        depth = len(self.verdict)
        before, errors_before = self._validated, self._errors
        validated, errors = list(self._own[min(depth, 2)]), list(self._error[min(depth, 1)])
        marked = list(validated)
        for at in self._inner:
            place = self._places[at]
            own, error = validated[at], errors[at]
            if depth > 0:
                own = own.plus(_below(place, before))
                error = error.plus(_below(place, errors_before))
            same, marks, below = NONE, NONE, NONE
            for group in place.in_place:
                same = same.plus(_most(validated, group))
                marks = marks.plus(_most(marked, group))
                below = below.plus(_most(errors, group))
            validated[at] = own.plus(same)
            marked[at] = own.plus(same).plus(marks)
            if any(keyword in place.schema for keyword in _REPEATED):
                validated[at] = validated[at].plus(marked[at])
                marked[at] = marked[at].plus(validated[at])
            errors[at] = error.plus(below)
            if "anyOf" in place.schema or "oneOf" in place.schema:
                errors[at] = errors[at].plus(validated[at])
            validated[at], marked[at], errors[at] = _capped(validated[at]), _capped(marked[at]), _capped(errors[at])
        self._validated, self._errors = validated, errors
        self.verdict.append(validated[0])
        self.explanation.append(errors[0])
        return hash((tuple(validated), tuple(errors)))


_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def _leads_on(place: Place) -> bool:
    return bool(place.in_place or place.named or place.everywhere or place.listed or place.items)


def _below(place: Place, costs: list[Cost]) -> Cost:
    """What is applied to one property, or to one item."""
    of_property = _most(costs, tuple(place.named))
    for at in place.everywhere:
        of_property = of_property.plus(costs[at])
    of_item = _most(costs, tuple(place.listed))
    for at in place.items:
        of_item = of_item.plus(costs[at])
    return of_property.most(of_item)


def _most(costs: list[Cost], group: tuple[int, ...]) -> Cost:
    found = NONE
    for at in group:
        found = found.most(costs[at])
    return found


def _capped(cost: Cost) -> Cost:
    return cost if max(cost) < _ENDLESS else Cost(*(min(one, _ENDLESS) for one in cost))


def _children_first(places: tuple[Place, ...]) -> list[int]:
    """The places, each after those that apply to the same value. Raises Unclear where they lead back."""
    order: list[int] = []
    state = [0] * len(places)  # 1: begun, 2: done
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


def _longest_chain(places: tuple[Place, ...], order: list[int]) -> int:
    """How many references at most lead from one to the next for the same value."""
    lengths = [0] * len(places)
    for at in order:
        longest = max((lengths[below] for group in places[at].in_place for below in group), default=0)
        lengths[at] = longest + any(keyword in places[at].schema for keyword in _REFERENCES)
    return max(lengths)


def _explained(places: tuple[Place, ...]) -> set[int]:
    """The places all of whose errors are collected: those that an anyOf or oneOf leads to."""
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


def _reading(text: bytes, count: JsonCount) -> float:
    items = units = 0
    for depth in range(count.levels):
        items += count.items(depth)
        units += count.number_units(depth)
    return (
        _FIXED
        + _READ_ITEM * items
        + _READ_CONTAINER * count.containers
        + _READ_KEY * count.keys
        + _READ_UNIT * units
        + _READ_BYTE * len(text)
    )


def _whole(steps: float) -> int:
    return UNBOUNDED if steps >= _ENDLESS else int(steps) + 1
