"""Replaces sensitive strings in an Avro datum, using its writer schema. All other bytes stay unchanged.

A path consists of field names and map keys. Arrays and unions are not part of a path. A replacement changes the length
of the string. It also changes the size of each surrounding array or map block that states its size (with a negative
count).
"""

from array import array
from collections.abc import Callable
from typing import Final

from sluicegate.protocol.integers import signed_varint
from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.sensitive.avro_records import AvroRecords, check_kind
from sluicegate.validation.sensitive.edits import Nodes, Unmaskable, check_string, fields_of, nodes_below
from sluicegate.validation.sensitive.texts import name_in, replacement
from sluicegate.validation.sensitive.writing import ValueWriter

_CONTINUES: Final = 0x80
_LAST_SHIFT: Final = 63
_VALUE_WORK: Final = 1024
_BYTE_WORK: Final = 4
_COUNTED_WORK: Final = 64 * 1024


def mask_avro(
    data: bytes, records: AvroRecords, root: Nodes, writer: ValueWriter, worked: Callable[[int], None]
) -> None:
    """Write the replacements in a datum. Raises Unmaskable, and the errors of `writer` and `worked`."""
    walk = _Walk(data, records, writer, worked)
    walk.value(records.root, root, 0)
    if walk.at != len(data):
        raise walk.not_of_schema()


class _Walk:
    """A pass over a datum. It skips types without bytes in records, so that each value takes a byte on each level."""

    def __init__(self, data: bytes, records: AvroRecords, writer: ValueWriter, worked: Callable[[int], None]) -> None:
        self._data = data
        self._end = len(data)
        self._records = records
        self._numbers: array[int] = records.numbers
        self._writer = writer
        self._worked = worked
        self._work = 0
        self.at = 0

    def value(self, at: int, nodes: Nodes, depth: int) -> None:
        """Move past a value at the place of `nodes`. Its type is at `at` in the plan."""
        self._work += _VALUE_WORK
        if self._work >= _COUNTED_WORK:
            self._count(0)
        numbers = self._numbers
        kind = numbers[at]
        if kind == avro_datum.STRING:
            self._string(nodes)
        elif kind == avro_datum.UNION:
            branch = self._number()
            if not 0 <= branch < numbers[at + 1]:
                raise self.not_of_schema()
            inner = numbers[at + 2 + branch]
            _check_depth(depth)
            if numbers[inner] != avro_datum.NULL:
                self.value(inner, nodes, depth + 1)
        elif kind == avro_datum.ARRAY:
            _check_depth(depth)
            self._blocks(at, nodes, depth)
        elif kind != avro_datum.NULL:
            if nodes:
                check_kind(kind, nodes)
            self._other(kind, at, nodes, depth)

    def _other(self, kind: int, at: int, nodes: Nodes, depth: int) -> None:
        if kind == avro_datum.RECORD:
            _check_depth(depth)
            for inner, places in self._records.fields(at, nodes, self._worked):
                self.value(inner, places, depth + 1)
        elif kind == avro_datum.MAP:
            _check_depth(depth)
            self._blocks(at, nodes, depth)
        elif kind == avro_datum.BYTES:
            self._skip(self._number())
        elif kind == avro_datum.SIZED:
            self._skip(self._numbers[at + 1])
        elif kind == avro_datum.BOOLEAN:
            self._skip(1)
        else:
            self._number()

    def _count(self, work: int) -> None:
        counted, self._work = self._work + work, 0
        self._worked(counted)

    def _string(self, nodes: Nodes) -> None:
        before = self.at
        start = self._after_length()
        fields = fields_of(nodes) if nodes else None
        if fields is None:
            return
        check_string(nodes, fields)
        self._work += _BYTE_WORK * (self.at - start)
        try:
            new = replacement(self._data, start, self.at, fields, self._worked)
        except UnicodeError:
            raise self.not_of_schema() from None
        if new is not None:
            self._writer.replace(before, self.at, signed_varint(len(new)) + new, fields)

    def _blocks(self, at: int, nodes: Nodes, depth: int) -> None:
        """Read an array or a map."""
        items, is_map = self._numbers[at + 1], self._numbers[at] == avro_datum.MAP
        is_empty = not is_map and self._numbers[at + 2] == 0
        while True:
            count = self._number()
            if count == 0:
                return
            self._work += _VALUE_WORK
            if self._work >= _COUNTED_WORK:
                self._count(0)
            if count > 0:
                if not is_empty:  # items without bytes contain no strings
                    self._items(count, items, nodes, is_map, depth)
                continue
            size_at = self.at
            size = self._number()
            start = self.at
            if not 0 <= size <= self._end - start:
                raise self.not_of_schema()
            around = self._writer.begin_part(start)
            if not is_empty:
                self._items(-count, items, nodes, is_map, depth)
            if self.at - start != size:
                raise self.not_of_schema()
            self._writer.end_part(around, size_at, start, self.at, signed_varint)

    def _items(self, count: int, items: int, nodes: Nodes, is_map: bool, depth: int) -> None:
        if count > self._end - self.at:  # each item takes at least a byte
            raise self.not_of_schema()
        for _ in range(count):
            inner = nodes
            if is_map:
                start = self._after_length()
                inner = self._below_key(start, nodes) if nodes else nodes
            self.value(items, inner, depth + 1)

    def _below_key(self, start: int, nodes: Nodes) -> Nodes:
        self._work += _VALUE_WORK + self.at - start
        try:
            name = name_in(self._data, start, self.at, nodes, self._worked)
        except UnicodeError:
            raise self.not_of_schema() from None
        return nodes_below(nodes, name, self._worked) + tuple(
            node for node in nodes if node.passes_maps and node.fields
        )

    def _after_length(self) -> int:
        """Skip a length and the bytes that it counts. Return the position of these bytes."""
        size = self._number()
        start = self.at
        if not 0 <= size <= self._end - start:
            raise self.not_of_schema()
        self.at = start + size
        return start

    def _skip(self, size: int) -> None:
        if not 0 <= size <= self._end - self.at:
            raise self.not_of_schema()
        self.at += size

    def _number(self) -> int:
        """Read a zigzag number of at most 64 bits."""
        at = self.at
        if at < self._end:
            byte = self._data[at]
            if byte < _CONTINUES:
                self.at = at + 1
                return (byte >> 1) ^ -(byte & 1)
        return self._long_number()

    def _long_number(self) -> int:
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
        raise self.not_of_schema()

    def not_of_schema(self) -> Unmaskable:
        """Return the error for bytes that are not a datum of the schema."""
        return Unmaskable(f"the value does not match its Avro schema at byte {self.at}, so its fields cannot be found")


def _check_depth(depth: int) -> None:
    if depth == avro_datum.MAX_DEPTH:
        raise Unmaskable(f"the value is nested more than {avro_datum.MAX_DEPTH} levels deep")
