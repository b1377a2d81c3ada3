"""Replaces sensitive strings in an Avro datum, found by its writer schema; all other bytes stay.

A path has the names of fields, and a map's keys; arrays and unions are passed through. The length of a string follows
from the change, and the size of a block of an array or map that states it (a negative count).
"""

from array import array
from collections.abc import Callable, Mapping
from typing import Final

from sluicegate.protocol.integers import signed_varint
from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.plan import Plan
from sluicegate.validation.sensitive.edits import Edits, Nodes, Unmaskable, below, check_other, check_string, fields_of

TaggedFields = Mapping[int, Mapping[int, Nodes]]
"""The nodes of tagged fields, by the position of the record in the plan and that of the field in the record."""

_CONTINUES: Final = 0x80
_LAST_SHIFT: Final = 63
KINDS_OF_AVRO: Final = {
    avro_datum.BOOLEAN: "a boolean",
    avro_datum.INT: "a number",
    avro_datum.LONG: "a number",
    avro_datum.BYTES: "bytes",
    avro_datum.SIZED: "a number or fixed bytes",
    avro_datum.ENUM: "an enum",
    avro_datum.MAP: "a map; name its entries",
    avro_datum.RECORD: "a record; name its fields",
}


def edits_of_avro(data: bytes, plan: Plan, root: Nodes, tagged: TaggedFields, worked: Callable[[int], None]) -> Edits:
    """Return the replacements in a datum. Raises Unmaskable, and what `worked` raises, which is called with the size of
    each value.
    """
    walk = _Walk(data, plan, tagged, worked)
    walk.value(plan.root, root, 0)
    if walk.at != len(data):
        raise walk.no_datum()
    return walk.edits


class _Walk:
    def __init__(self, data: bytes, plan: Plan, tagged: TaggedFields, worked: Callable[[int], None]) -> None:
        self._data = data
        self._end = len(data)
        self._numbers: array[int] = plan.numbers
        self._declared = plan.declared
        self._tagged = tagged
        self._worked = worked
        self.at = 0
        self.edits = Edits()

    def value(self, at: int, nodes: Nodes, depth: int) -> None:
        """Move after a value of the type at `at` of the plan, which is at the place of `nodes`."""
        numbers = self._numbers
        kind = numbers[at]
        if kind == avro_datum.STRING:
            self._string(nodes)
        elif kind == avro_datum.UNION:
            branch = self._number()
            if not 0 <= branch < numbers[at + 1]:
                raise self.no_datum()
            self._check_depth(depth)
            self.value(numbers[at + 2 + branch], nodes, depth + 1)
        elif kind == avro_datum.ARRAY:
            self._check_depth(depth)
            self._blocks(at, nodes, depth)
        elif kind != avro_datum.NULL:
            if nodes and not (kind == avro_datum.MAP and all(node.passes_maps for node in nodes if node.fields)):
                check_other(nodes, KINDS_OF_AVRO[kind])
            self._other(kind, at, nodes, depth)
        self._worked(0)

    def _other(self, kind: int, at: int, nodes: Nodes, depth: int) -> None:
        numbers = self._numbers
        if kind == avro_datum.RECORD:
            self._check_depth(depth)
            tags = self._tagged.get(at, {})
            fields = self._declared[at]["fields"]
            for i in range(numbers[at + 1]):
                inner = below(nodes, fields[i]["name"]) if nodes else nodes
                self.value(numbers[at + 2 + i], inner + tags[i] if i in tags else inner, depth + 1)
        elif kind == avro_datum.MAP:
            self._check_depth(depth)
            self._blocks(at, nodes, depth)
        elif kind == avro_datum.BYTES:
            self._skip(self._number())
        elif kind == avro_datum.SIZED:
            self._skip(numbers[at + 1])
        elif kind == avro_datum.BOOLEAN:
            self._skip(1)
        else:
            self._number()

    def _string(self, nodes: Nodes) -> None:
        before = self.at
        start = self._after_length()
        self._worked(self.at - before)
        fields = fields_of(nodes)
        if fields is None:
            return
        check_string(nodes, fields)
        try:
            text = self._data[start : self.at].decode()
        except UnicodeDecodeError:
            raise self.no_datum() from None
        replaced = fields.replaced(text)
        if replaced != text:
            new = replaced.encode()
            self.edits.replace(before, self.at, signed_varint(len(new)) + new, fields)

    def _blocks(self, at: int, nodes: Nodes, depth: int) -> None:
        """Read an array or a map."""
        items, is_map = self._numbers[at + 1], self._numbers[at] == avro_datum.MAP
        is_empty = not is_map and self._numbers[at + 2] == 0
        while True:
            count = self._number()
            if count == 0:
                return
            size_at = self.at
            size = self._number() if count < 0 else -1
            start, since = self.at, self.edits.count
            if count < 0 and not 0 <= size <= self._end - start:
                raise self.no_datum()
            if not is_empty:  # items without bytes have no strings
                self._items(abs(count), items, nodes, is_map, depth)
            if count < 0:
                if self.at - start != size:
                    raise self.no_datum()
                if self.edits.count > since:
                    self.edits.put_length(since, size_at, start, signed_varint(size + self.edits.growth(since)))

    def _items(self, count: int, items: int, nodes: Nodes, is_map: bool, depth: int) -> None:
        if count > self._end - self.at:  # each takes at least a byte
            raise self.no_datum()
        for _ in range(count):
            inner = nodes
            if is_map:
                start = self._after_length()
                inner = self._below_key(self._data[start : self.at], nodes) if nodes else nodes
            self.value(items, inner, depth + 1)

    def _below_key(self, key: bytes, nodes: Nodes) -> Nodes:
        try:
            name = key.decode()
        except UnicodeDecodeError:
            raise self.no_datum() from None
        return below(nodes, name) + tuple(node for node in nodes if node.passes_maps and node.fields)

    def _after_length(self) -> int:
        """Move after bytes with a length before them; return where they begin."""
        size = self._number()
        start = self.at
        self._skip(size)
        return start

    def _skip(self, size: int) -> None:
        if not 0 <= size <= self._end - self.at:
            raise self.no_datum()
        self.at += size

    def _number(self) -> int:
        """Read a zig-zag number of at most 64 bits."""
        value = shift = 0
        while self.at < self._end:
            byte = self._data[self.at]
            self.at += 1
            if shift == _LAST_SHIFT and byte > 1:
                break
            value |= (byte & (_CONTINUES - 1)) << shift
            if byte < _CONTINUES:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise self.no_datum()

    def _check_depth(self, depth: int) -> None:
        if depth == avro_datum.MAX_DEPTH:
            raise Unmaskable(f"the value is nested more than {avro_datum.MAX_DEPTH} levels deep")

    def no_datum(self) -> Unmaskable:
        """Return that the bytes are no datum of the schema."""
        return Unmaskable(f"the value is not Avro of its schema at byte {self.at}, so its fields cannot be found")
