"""Adds up a JSON Schema's costs level by level, for the values at each depth below the validated value.

Compiled with the types in levels.pxd if a C compiler is installed.
"""

from array import array

SAME, NAMED, EVERYWHERE, LISTED, ITEMS = 0, 1, 2, 3, 4
"""How a group of schemas applies: one of them to the same value; one or all of them to a property, or to an item."""

ENDLESS = 1e15
PARTS = 3
"""The parts of a cost: for items, for bytes and for numbers."""

_SAME, _EVERYWHERE, _ITEMS = SAME, EVERYWHERE, ITEMS
_ENDLESS = ENDLESS
_PARTS = PARTS


class LevelCosts:
    """Costs by place, with three numbers each.

    - `own`, `members`, `inside`: the costs for the value itself, one level below, and any level.
    - `error`, `error_inside`: the same costs for explanations.
    - `edges`: the groups of each place, from `begins` on: how they apply, their number, and their places.
    - `order`: the places with edges. A place follows all places that apply to the same value.
    - `repeats`: the places that validate their schemas again.
    - `collects`: the places that collect all errors.
    """

    def __init__(
        self,
        costs: "tuple[array[float], array[float], array[float], array[float], array[float]]",
        edges: "array[int]",
        begins: "array[int]",
        order: "array[int]",
        repeats: bytes,
        collects: bytes,
    ) -> None:
        self._own, self._members, self._inside, self._error, self._error_inside = costs
        self._edges = edges
        self._begins = begins
        self._order = order
        self._repeats = repeats
        self._collects = collects
        self._size = len(self._own)
        self._held = [array("d", bytes(8 * self._size)) for _ in range(5)]
        self._validated, self._before, self._marked, self._errors, self._errors_before = self._held
        self._is_odd = False
        self._depth = 0

    def next(self) -> tuple[int, int]:
        """Descend one level. Return two hashes of the state: of the verdicts only, and including the explanations."""
        self._validated, self._before = self._before, self._validated
        self._errors, self._errors_before = self._errors_before, self._errors
        self._is_odd = not self._is_odd
        self._begin()
        for at in self._order:
            self._add(at)
        self._depth += 1
        validated, errors = (self._held[1], self._held[4]) if self._is_odd else (self._held[0], self._held[3])
        verdicts = hash(validated.tobytes())
        return verdicts, hash((verdicts, errors.tobytes()))

    def verdict(self, part: int) -> float:
        """Return the cost of the root at the last computed level."""
        return self._validated[part]

    def explanation(self, part: int) -> float:
        """Return the cost of the root's explanation at the last computed level."""
        return self._errors[part]

    def _begin(self) -> None:
        i = 0
        while i < self._size:
            if self._depth == 0:
                self._validated[i] = self._own[i]
                self._errors[i] = self._error[i]
            else:
                self._validated[i] = self._inside[i] + (self._members[i] if self._depth == 1 else 0.0)
                self._errors[i] = self._error_inside[i]
            self._marked[i] = self._validated[i]
            i += 1

    def _add(self, at: int) -> None:
        part = 0
        while part < _PARTS:
            self._add_part(at, part)
            part += 1

    def _add_part(self, at: int, part: int) -> None:
        same = marks = below = of_property = of_item = error_of_property = error_of_item = 0.0
        edge = self._begins[at]
        end = self._begins[at + 1]
        while edge < end:
            kind = self._edges[edge]
            stop = edge + 2 + self._edges[edge + 1]
            edge += 2
            cost = mark = error = 0.0
            while edge < stop:
                child = self._edges[edge] * _PARTS + part
                edge += 1
                if kind == _SAME:
                    cost = max(cost, self._validated[child])
                    mark = max(mark, self._marked[child])
                    error = max(error, self._errors[child])
                elif kind in (_EVERYWHERE, _ITEMS):
                    cost += self._before[child]
                    error += self._errors_before[child]
                else:
                    cost = max(cost, self._before[child])
                    error = max(error, self._errors_before[child])
            if kind == _SAME:
                same += cost
                marks += mark
                below += error
            elif kind <= _EVERYWHERE:
                of_property += cost
                error_of_property += error
            else:
                of_item += cost
                error_of_item += error
        place = at * _PARTS + part
        total = self._validated[place] + max(of_property, of_item) + same
        marks += total
        if self._repeats[at]:
            total += marks
            marks += total
        below += self._errors[place] + max(error_of_property, error_of_item)
        if self._collects[at]:
            below += total
        self._validated[place] = min(total, _ENDLESS)
        self._marked[place] = min(marks, _ENDLESS)
        self._errors[place] = min(below, _ENDLESS)
