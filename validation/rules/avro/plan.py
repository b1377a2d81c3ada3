"""Compiles an Avro schema to a plan for datum.py: a few numbers for each type, and a name for messages. Also an upper
bound of the cost to walk over a datum.

Every value takes a step. Most values take at least a byte, so the size bounds their number. Values without bytes, such
as nulls and records, follow a union branch, an array item or a map value, which take a byte. They can be many: in a
chain of thirty records, each of which contains the next one twice, one byte is followed by a billion values.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.rule import UNBOUNDED
from sluicegate.validation.rules.schemas.content import SchemaUnusable

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


_PLAIN: Final = {
    "null": (avro_datum.NULL,),
    "boolean": (avro_datum.BOOLEAN,),
    "int": (avro_datum.INT,),
    "long": (avro_datum.LONG,),
    "float": (avro_datum.SIZED, 4),
    "double": (avro_datum.SIZED, 8),
    "bytes": (avro_datum.BYTES,),
    "string": (avro_datum.STRING,),
}
_MOST_NUMBERS = 1_000_000
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled schema. `names`: the name of each type in messages, by its position in `numbers`."""

    numbers: "array[int]"
    root: int
    names: dict[int, str]
    cost: AvroCost


def plan_of(schema: Any, elsewhere: Mapping[str, Any]) -> Plan:
    """Return the plan of a schema from fastavro's parse_schema, which has full names.

    `elsewhere`: types from references. Raises SchemaUnusable.
    """
    writer = _Writer(elsewhere)
    root = writer.write(schema, "the datum", 0)
    writer.find_empty_items()
    return Plan(array("q", writer.numbers), root, writer.names, avro_cost(writer.numbers, root, list(writer.names)))


class _Writer:
    """Writes types one after the other; a named type is registered before its inner types, which may refer to it."""

    def __init__(self, elsewhere: Mapping[str, Any]) -> None:
        self.numbers: list[int] = []
        self.names: dict[int, str] = {}
        self._elsewhere = elsewhere
        self._named: dict[str, int] = {}
        self._empty: dict[int, bool] = {}

    def write(self, schema: Any, name: str, depth: int) -> int:
        """Write a type; return its position."""
        if depth > _DEEPEST or len(self.numbers) > _MOST_NUMBERS:
            raise SchemaUnusable("it is too large, or nested too deep")
        if isinstance(schema, list):
            return self._with_children(avro_datum.UNION, schema, [name] * len(schema), name, depth)
        if isinstance(schema, str):
            return self._known(schema, name, depth)
        kind = schema["type"]
        if not isinstance(kind, str):  # {"type": {"type": ...}}
            return self.write(kind, name, depth + 1)
        if kind == "array":
            return self._around(avro_datum.ARRAY, schema["items"], name, depth)
        if kind == "map":
            return self._around(avro_datum.MAP, schema["values"], name, depth)
        if kind == "fixed":
            return self._put_named(schema["name"], name, avro_datum.SIZED, schema["size"])
        if kind == "enum":
            return self._put_named(schema["name"], name, avro_datum.ENUM, len(schema["symbols"]))
        if kind in ("record", "error"):
            fields = schema["fields"]
            short = schema["name"].rpartition(".")[2]
            names = [f"{short}.{field['name']}" for field in fields]
            self._named[schema["name"]] = len(self.numbers)
            return self._with_children(avro_datum.RECORD, [field["type"] for field in fields], names, short, depth)
        return self._known(kind, name, depth)

    def _known(self, kind: str, name: str, depth: int) -> int:
        """Write a type given by name: a primitive type, a type written before, or one from a reference."""
        if kind in _PLAIN:
            return self._put(name, *_PLAIN[kind])
        if kind in self._named:
            return self._named[kind]
        if kind not in self._elsewhere:
            raise SchemaUnusable(f"{kind[:100]} is no type that it defines")
        return self.write(self._elsewhere[kind], name, depth + 1)

    def find_empty_items(self) -> None:
        """Set for each array whether its items take any bytes."""
        for at in self.names:
            if self.numbers[at] == avro_datum.ARRAY:
                self.numbers[at + 2] = int(not self._is_empty(self.numbers[at + 1]))

    def _is_empty(self, at: int) -> bool:
        """Return whether a value takes no bytes; False for a record within itself, which has no datum."""
        if at not in self._empty:
            self._empty[at] = False  # for a type within itself
            kind = self.numbers[at]
            if kind == avro_datum.RECORD:
                fields = self.numbers[at + 2 : at + 2 + self.numbers[at + 1]]
                self._empty[at] = all(self._is_empty(field) for field in fields)
            else:
                self._empty[at] = kind == avro_datum.NULL or (kind == avro_datum.SIZED and self.numbers[at + 1] == 0)
        return self._empty[at]

    def _put(self, name: str, *numbers: int) -> int:
        at = len(self.numbers)
        self.numbers += numbers
        self.names[at] = name
        return at

    def _put_named(self, full_name: str, name: str, *numbers: int) -> int:
        at = self._put(name, *numbers)
        self._named[full_name] = at
        return at

    def _around(self, kind: int, inner: Any, name: str, depth: int) -> int:
        at = self._put(name, kind, 0, 1)
        self.numbers[at + 1] = self.write(inner, name, depth + 1)
        return at

    def _with_children(self, kind: int, children: list[Any], names: list[str], name: str, depth: int) -> int:
        at = self._put(name, kind, len(children), *(0 for _ in children))
        for i, child in enumerate(children):
            self.numbers[at + 2 + i] = self.write(child, names[i], depth + 1)
        return at
