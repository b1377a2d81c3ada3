"""Compiles an Avro schema to a plan for datum.py, and bounds the cost of a walk over a datum.

A plan contains a few numbers per type, and a name for messages.

Every value takes a step. Most values take at least one byte, so the size of the data bounds their number. Values
without bytes, such as nulls and records, follow a union branch, an array item or a map value, which takes a byte. There
may be many such values: in a chain of thirty records, each containing the next one twice, a billion values follow a
single byte.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.names import DEEPEST, NAMED, NamedType, find_named_types, named_type
from sluicegate.validation.rules.rule import UNBOUNDED
from sluicegate.validation.rules.schemas.content import SchemaUnusable

# Measured: 8 ns per value and 3 ns per byte; a few microseconds each without compiled code.
_STEPS_OF_VALUE, _STEPS_OF_BYTE = (0.12, 0.03) if is_compiled() else (30.0, 30.0)
_FIXED = 10
_ENDLESS = 1e15


@dataclass(frozen=True, slots=True)
class AvroCost:
    """The cost of a schema: the number of values that take no bytes in any datum, and how many each byte may add."""

    fixed_values: float
    values_of_byte: float

    def steps(self, data: bytes) -> int:
        """Return an upper bound of the steps for walking over a datum."""
        size = len(data)
        values = self.fixed_values + size * self.values_of_byte
        steps = _FIXED + values * _STEPS_OF_VALUE + size * _STEPS_OF_BYTE
        return UNBOUNDED if values >= _ENDLESS else int(steps)


def avro_cost(numbers: Sequence[int], root: int, types: Sequence[int]) -> AvroCost:
    """Return the cost of a plan. `types` contains the positions of all types in `numbers`."""
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
        # In a datum that ends early, each enclosing value may already have counted all its inner values.
        fixed = self._empty_values(root)[0] + avro_datum.MAX_DEPTH * most
        return AvroCost(1 + fixed, 1 + of_byte)

    def _targets(self, at: int) -> list[tuple[int, int]]:
        """Return the types of the values that a byte may add, each with the additional bytes of the value."""
        numbers = self._numbers
        kind = numbers[at]
        if kind == avro_datum.UNION:
            return [(branch, 1) for branch in numbers[at + 2 : at + 2 + numbers[at + 1]]]
        if kind == avro_datum.MAP:
            return [(numbers[at + 1], 1)]
        # Items without bytes are counted, but not walked over.
        return [(numbers[at + 1], 0)] if kind == avro_datum.ARRAY and numbers[at + 2] else []

    def _empty_values(self, at: int) -> tuple[float, float]:
        """Return how many values that take no bytes a value of the type contains, and its minimum size in bytes."""
        known = self._known.get(at)
        if known is None:
            self._known[at] = (_ENDLESS, 0.0)  # for a record that contains itself: no such datum exists
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
_LARGEST_FIXED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DatumPlan:
    """A compiled schema. All fields are indexed by positions in `numbers`.

    `names` contains each type's name in messages, `declared` the schema of each type, and `full_names` the full names
    of named types.
    """

    numbers: "array[int]"
    root: int
    names: dict[int, str]
    cost: AvroCost
    declared: dict[int, Any]
    full_names: dict[int, str]


def plan_of(schema: Any, references: Sequence[Any] = ()) -> DatumPlan:
    """Return the plan of a schema, which is given as parsed JSON.

    `references` are the schemas of the types that it refers to, each after its own references. Raises SchemaUnusable.
    """
    types: dict[str, NamedType] = {}
    for reference in references:
        find_named_types(reference, "", types)
    earlier = frozenset(types)
    find_named_types(schema, "", types)
    writer = _Writer(types, earlier)
    root = writer.write(schema, "", "the datum", 0)
    writer.find_empty_items()
    cost = avro_cost(writer.numbers, root, list(writer.names))
    return DatumPlan(array("q", writer.numbers), root, writer.names, cost, writer.declared, writer.full_names)


class _Writer:
    """A writer of plans. It registers a named type before its inner types, because these may refer to it."""

    def __init__(self, types: Mapping[str, NamedType], earlier: frozenset[str]) -> None:
        self.numbers: list[int] = []
        self.names: dict[int, str] = {}
        self.declared: dict[int, Any] = {}
        self.full_names: dict[int, str] = {}
        self._types = types
        self._earlier = earlier
        self._written: dict[str, int] = {}
        self._empty: dict[int, bool] = {}

    def write(self, schema: Any, namespace: str, name: str, depth: int) -> int:
        """Write a type and return its position. `namespace` applies to names without one."""
        at = self._put_type(schema, namespace, name, depth)
        kind = schema.get("type") if isinstance(schema, dict) else schema
        if isinstance(kind, str) and (kind in _PLAIN or kind in ("array", "map")):
            self.declared[at] = schema
        return at

    def _put_type(self, schema: Any, namespace: str, name: str, depth: int) -> int:
        if depth > DEEPEST or len(self.numbers) > _MOST_NUMBERS:
            raise SchemaUnusable("the schema is too large, or nested too deeply")
        if isinstance(schema, list):
            branches = [(branch, name) for branch in schema]
            return self._with_children(avro_datum.UNION, branches, namespace, name, depth)
        if isinstance(schema, str):
            return self._referred(schema, namespace, name, depth)
        kind = schema.get("type") if isinstance(schema, dict) else None
        if kind is None:
            raise SchemaUnusable(
                "a type in the schema is neither a name, a list of branches, nor an object with a type"
            )
        if not isinstance(kind, str):  # {"type": {"type": ...}}
            return self.write(kind, namespace, name, depth + 1)
        if kind == "array":
            return self._around(avro_datum.ARRAY, schema.get("items"), namespace, name, depth)
        if kind == "map":
            return self._around(avro_datum.MAP, schema.get("values"), namespace, name, depth)
        if kind in NAMED:
            return self._named(named_type(schema, namespace), name, depth)
        return self._referred(kind, namespace, name, depth)

    def _referred(self, kind: str, namespace: str, name: str, depth: int) -> int:
        """Write a type that is given by name: a primitive type, or a named type unless it is already written."""
        if kind in _PLAIN:
            return self._put(name, *_PLAIN[kind])
        full = f"{namespace}.{kind}" if namespace and "." not in kind else kind
        places = (full, kind)
        # As in Java, earlier definitions of types take precedence over later ones.
        known = next((one for one in places if one in self._written or one in self._earlier), None)
        found = known or next((one for one in places if one in self._types), None)
        if found is None:
            raise SchemaUnusable(f"the schema does not define the type {kind[:100]}")
        at = self._written.get(found)
        return self._named(self._types[found], name, depth) if at is None else at

    def _named(self, one: NamedType, name: str, depth: int) -> int:
        if one.name in _PLAIN:
            raise SchemaUnusable(f"the schema defines a type with the name {one.name}")
        schema = one.schema
        if self._types[one.name].schema == schema:
            if one.name in self._written:
                return self._written[one.name]
            self._written[one.name] = len(self.numbers)
        at = self._put_named(one, name, depth)
        self.declared[at] = schema
        self.full_names[at] = one.name
        return at

    def _put_named(self, one: NamedType, name: str, depth: int) -> int:
        schema = one.schema
        if schema["type"] == "fixed":
            return self._put(name, avro_datum.SIZED, _size(schema, one.name))
        if schema["type"] == "enum":
            symbols = schema.get("symbols")
            if not isinstance(symbols, list):
                raise SchemaUnusable(f"the enum {one.name[:100]} has no symbols")
            return self._put(name, avro_datum.ENUM, len(symbols))
        short = one.name.rpartition(".")[2]
        fields = [(field.get("type"), f"{short}.{field.get('name')}") for field in _fields(schema, one.name)]
        return self._with_children(avro_datum.RECORD, fields, one.namespace, short, depth)

    def find_empty_items(self) -> None:
        """Record for each array whether its items take any bytes."""
        for at in self.names:
            if self.numbers[at] == avro_datum.ARRAY:
                self.numbers[at + 2] = int(not self._is_empty(self.numbers[at + 1]))

    def _is_empty(self, at: int) -> bool:
        """Return whether a value takes no bytes; False for a record that contains itself (no such datum exists)."""
        if at not in self._empty:
            self._empty[at] = False  # for a type that contains itself
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

    def _around(self, kind: int, inner: Any, namespace: str, name: str, depth: int) -> int:
        at = self._put(name, kind, 0, 1)
        self.numbers[at + 1] = self.write(inner, namespace, name, depth + 1)
        return at

    def _with_children(self, kind: int, children: list[tuple[Any, str]], namespace: str, name: str, depth: int) -> int:
        """Write a type with inner types. `children` are the inner types, each with its name in messages."""
        at = self._put(name, kind, len(children), *(0 for _ in children))
        for i, (child, child_name) in enumerate(children):
            self.numbers[at + 2 + i] = self.write(child, namespace, child_name, depth + 1)
        return at


def _fields(schema: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise SchemaUnusable(f"the record {name[:100]} has no fields")
    if not all(isinstance(field.get("name"), str) for field in fields):
        raise SchemaUnusable(f"a field of the record {name[:100]} has no name")
    return fields


def _size(schema: Mapping[str, Any], name: str) -> int:
    size = schema.get("size")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= _LARGEST_FIXED:
        raise SchemaUnusable(f"the fixed {name[:100]} has no size, or a size of more than 32 bits")
    return size
