"""An upper bound of the cost to walk over an Avro datum, for a schema as a plan (plan.py).

Every value takes a step. Most values take at least a byte, so the size bounds their number. Values without bytes, such
as nulls and records, follow a union branch, an array item or a map value, which take a byte. They can be many: in a
chain of thirty records, each of which contains the next one twice, one byte is followed by a billion values.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.rule import UNBOUNDED

# Measured: 8 ns per value, 3 ns per byte; some microseconds each without compiled code.
_STEPS_OF_VALUE, _STEPS_OF_BYTE = (0.12, 0.03) if is_compiled() else (30.0, 30.0)
_FIXED = 10
_ENDLESS = 1e15


@dataclass(frozen=True, slots=True)
class AvroCost:
    """The cost of a schema: values without bytes in any datum, and the most that each byte may add."""

    fixed_values: float
    values_of_byte: float

    def steps(self, data: bytes) -> int:
        """Return an upper bound of the steps to walk over a datum."""
        size = len(data)
        values = self.fixed_values + size * self.values_of_byte
        steps = _FIXED + values * _STEPS_OF_VALUE + size * _STEPS_OF_BYTE
        return UNBOUNDED if values >= _ENDLESS else int(steps)


def avro_cost(numbers: Sequence[int], root: int, types: Sequence[int]) -> AvroCost:
    """Return the cost of a plan. `types`: the positions of all types in `numbers`."""
    return _Counter(numbers).cost(root, types)


class _Counter:
    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._known: dict[int, tuple[float, float]] = {}

    def cost(self, root: int, types: Sequence[int]) -> AvroCost:
        of_byte = most = 0.0
        for at in types:
            for target, paid in self._targets(at):
                values, size = self._empty_values(target)
                of_byte = max(of_byte, values / max(1.0, paid + size))
                most = max(most, values)
        # In a datum that ends early, each enclosing value may already have all of its inner values.
        fixed = self._empty_values(root)[0] + avro_datum.MAX_DEPTH * most
        return AvroCost(1 + fixed, 1 + of_byte)

    def _targets(self, at: int) -> list[tuple[int, int]]:
        """Return the types of the values that a byte may add, each with its additional bytes."""
        numbers = self._numbers
        kind = numbers[at]
        if kind == avro_datum.UNION:
            return [(branch, 1) for branch in numbers[at + 2 : at + 2 + numbers[at + 1]]]
        if kind == avro_datum.MAP:
            return [(numbers[at + 1], 1)]
        # Items without bytes are counted, not walked over.
        return [(numbers[at + 1], 0)] if kind == avro_datum.ARRAY and numbers[at + 2] else []

    def _empty_values(self, at: int) -> tuple[float, float]:
        """Return how many values without bytes a value of the type contains, and its fewest bytes."""
        known = self._known.get(at)
        if known is None:
            self._known[at] = (_ENDLESS, 0.0)  # for a record within itself, which has no datum
            known = self._known[at] = self._computed(at)
        return known

    def _computed(self, at: int) -> tuple[float, float]:
        numbers = self._numbers
        kind = numbers[at]
        if kind == avro_datum.RECORD:
            fields = [self._empty_values(field) for field in numbers[at + 2 : at + 2 + numbers[at + 1]]]
            return min(_ENDLESS, 1 + sum(values for values, _ in fields)), sum(size for _, size in fields)
        if kind == avro_datum.NULL:
            return 1.0, 0.0
        if kind == avro_datum.SIZED:
            size = numbers[at + 1]
            return float(size == 0), float(size)
        return 0.0, 1.0
