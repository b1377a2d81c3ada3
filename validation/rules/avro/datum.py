"""Walks over an Avro datum and checks that the bytes are exactly one value of a schema.

The walk allocates no memory. plan.py compiles a schema to a plan: a few numbers per type, which refer to other types by
position. AvroCost in plan.py bounds the cost before the walk. Compiled with the types in datum.pxd if a C compiler is
installed.
"""

from array import array
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from sluicegate.validation.rules.strict_utf8 import is_text


class DatumFault(IntEnum):
    """The reason why bytes are not a datum of a schema."""

    ENDS_EARLY = 1
    LEFT_OVER = 2
    TOO_DEEP = 3
    BAD_VARINT = 4
    NO_BOOLEAN = 5
    NO_INT = 6
    BAD_LENGTH = 7
    NOT_UTF8 = 8
    NO_SYMBOL = 9
    NO_BRANCH = 10
    BAD_COUNT = 11
    BLOCK_SIZE = 12


# The types. Each comment lists the numbers that follow the type in a plan.
NULL, BOOLEAN, INT, LONG = 0, 1, 2, 3
BYTES, STRING = 4, 5
SIZED = 6  # size in bytes: fixed, float and double
ENUM = 7  # number of symbols
ARRAY = 8  # type of the items, and whether an item takes any bytes
MAP = 9  # type of the values
UNION = 10  # number of branches, and each branch
RECORD = 11  # number of fields, and each field

MAX_DEPTH = 100
MOST_EMPTY_BUILT = 100
"""The maximum number of items that take no bytes in an array, if the array's value is built."""
MOST_EMPTY_ITEMS = 2**31 - 9
"""The maximum number of items that take no bytes in an array. It is that of Java's reader.

Source: SystemLimitException in Avro 1.12.
"""

# Copies with C types.
_NULL, _BOOLEAN, _INT, _LONG, _BYTES, _STRING, _SIZED, _ENUM, _ARRAY, _MAP, _UNION, _RECORD = range(12)
_ENDS_EARLY, _LEFT_OVER, _TOO_DEEP, _BAD_VARINT, _NO_BOOLEAN, _NO_INT = range(1, 7)
_BAD_LENGTH, _NOT_UTF8, _NO_SYMBOL, _NO_BRANCH, _BAD_COUNT, _BLOCK_SIZE = range(7, 13)
_DEEPEST = MAX_DEPTH
_MOST_EMPTY = MOST_EMPTY_ITEMS
_MOST_EMPTY_BUILT = MOST_EMPTY_BUILT
_LAST_SHIFT = 63
_INT_LEAST, _INT_MOST = -(2**31), 2**31 - 1


Details = Mapping[int, Any]
"""The details for building a value, by the position of its type.

- For a record: the names of its fields; None for a field that is not wanted.
- For an enum: its symbols.
- For strings, including a map's keys: a callable that converts strings with a zero byte.
- For any other type that is converted: a callable from int or bytes.
- For a union, if its branch matters: a callable from the branch index and the value.
"""


class Datum:
    """A walk over one datum. `why` is a DatumFault, or 0. `type_at` is the position of the type that was unreadable."""

    why: int
    type_at: int
    position: int

    def __init__(self, plan: "array[int]", data: bytes, start: int) -> None:
        self.held_plan = plan
        self.held_data = data
        self.plan = plan
        self.data = data
        self.position = start
        self.end = len(data)
        self.why = 0
        self.type_at = 0

    def is_whole(self, root: int) -> bool:
        """Return whether the data consists of exactly one value of the type at `root`."""
        if not self.value(root, 0):
            return False
        if self.position != self.end:
            return self.fail(root, _LEFT_OVER)
        return True

    def value(self, at: int, depth: int) -> bool:
        """Return whether a value of the type at `at` follows, and move past it."""
        kind = self.plan[at]
        if kind == _NULL:
            return True
        if kind in (_STRING, _BYTES):
            return self.text(at, kind == _STRING)
        if kind == _LONG:
            self.varint(at)
            return self.why == 0
        if kind == _INT:
            number = self.varint(at)
            if self.why == 0 and (number < _INT_LEAST or number > _INT_MOST):
                return self.fail(at, _NO_INT)
            return self.why == 0
        if kind == _SIZED:
            return self.skip(at, self.plan[at + 1])
        if kind == _BOOLEAN:
            if self.position == self.end:
                return self.fail(at, _ENDS_EARLY)
            if self.data[self.position] > 1:
                return self.fail(at, _NO_BOOLEAN)
            self.position += 1
            return True
        if kind == _ENUM:
            number = self.varint(at)
            if self.why == 0 and (number < 0 or number >= self.plan[at + 1]):
                return self.fail(at, _NO_SYMBOL)
            return self.why == 0
        if depth == _DEEPEST:
            return self.fail(at, _TOO_DEEP)
        if kind == _UNION:
            number = self.varint(at)
            if self.why != 0:
                return False
            if number < 0 or number >= self.plan[at + 1]:
                return self.fail(at, _NO_BRANCH)
            return self.value(self.plan[at + 2 + number], depth + 1)
        if kind == _RECORD:
            place = at + 2
            last = place + self.plan[at + 1]
            while place < last:
                if not self.value(self.plan[place], depth + 1):
                    return False
                place += 1
            return True
        return self.blocks(at, kind == _MAP, depth)

    def blocks(self, at: int, is_map: bool, depth: int) -> bool:
        """Read an array or a map: blocks of items, each preceded by its count, and a final count of 0."""
        items = self.plan[at + 1]
        is_empty = not is_map and self.plan[at + 2] == 0
        empties = 0
        while True:
            count = self.varint(at)
            if self.why != 0:
                return False
            if count == 0:
                return True
            block_end = -1
            if count < 0:  # the size of the block follows
                count = -count
                size = self.varint(at)
                if self.why != 0:
                    return False
                if count < 0 or size < 0 or size > self.end - self.position:
                    return self.fail(at, _BAD_COUNT)
                block_end = self.position + size
            if is_empty:
                if count > _MOST_EMPTY - empties:
                    return self.fail(at, _BAD_COUNT)
                empties += count
            else:
                if count > self.end - self.position:  # each item takes at least a byte
                    return self.fail(at, _BAD_COUNT)
                while count > 0:
                    if is_map and not self.text(at, True):
                        return False
                    if not self.value(items, depth + 1):
                        return False
                    count -= 1
            if block_end >= 0 and self.position != block_end:
                return self.fail(at, _BLOCK_SIZE)

    def built(self, at: int, depth: int, details: "Details") -> object:
        """Return the value of the type at `at`, and move past it. Sets `why` if the value cannot be read."""
        kind = self.plan[at]
        if kind >= _ARRAY and depth == _DEEPEST:
            self.fail(at, _TOO_DEEP)
            return None
        if kind == _UNION:
            number = self.varint(at)
            if self.why == 0 and 0 <= number < self.plan[at + 1]:
                value = self.built(self.plan[at + 2 + number], depth + 1, details)
                convert: Any = details.get(at)
                return value if convert is None else convert(number, value)
            self.fail(at, _NO_BRANCH)
            return None
        detail: Any = details.get(at)
        if kind == _RECORD:
            found = {}
            place = at + 2
            for name in detail:
                if name is None:
                    self.value(self.plan[place], depth + 1)
                else:
                    found[name] = self.built(self.plan[place], depth + 1, details)
                if self.why != 0:
                    return None
                place += 1
            return found
        if kind >= _ARRAY:
            return self.built_blocks(at, depth, details)
        begin = self.position
        if not self.value(at, depth) or kind == _NULL:
            return None
        end = self.position
        if kind == _SIZED:
            return detail(self.held_data[begin:end])
        if kind == _BOOLEAN:
            return self.data[begin] == 1
        self.position = begin
        number = self.varint(at)
        begin = self.position
        self.position = end
        if kind == _ENUM:
            return detail[number]
        if kind == _STRING:
            text = self.held_data[begin:end].decode()
            return detail(text) if "\0" in text else text
        if kind == _BYTES:
            return detail(self.held_data[begin:end])
        return number if detail is None else detail(number)

    def built_blocks(self, at: int, depth: int, details: "Details") -> object:
        """Return an array or map, like `built`. An array may have at most MOST_EMPTY_BUILT items that take no bytes."""
        items = self.plan[at + 1]
        is_map = self.plan[at] == _MAP
        is_empty = not is_map and self.plan[at + 2] == 0
        array_items: list[object] = []
        entries: dict[object, object] = {}
        while True:
            count = self.varint(at)
            if self.why != 0 or count == 0:
                return entries if is_map else array_items
            if count < 0:
                count = -count
                self.varint(at)  # the size of the block
            if is_empty and count > _MOST_EMPTY_BUILT - len(array_items):
                self.fail(at, _BAD_COUNT)
            while count > 0 and self.why == 0:
                if is_map:
                    begin = self.position
                    if not self.text(at, True):
                        return None
                    end = self.position
                    self.position = begin
                    self.varint(at)
                    key = self.held_data[self.position : end].decode()
                    if "\0" in key:
                        key = details[at](key)
                    self.position = end
                    entries[key] = self.built(items, depth + 1, details)
                else:
                    array_items.append(self.built(items, depth + 1, details))
                count -= 1

    def text(self, at: int, is_string: bool) -> bool:
        size = self.varint(at)
        if self.why != 0:
            return False
        if size < 0:
            return self.fail(at, _BAD_LENGTH)
        if size > self.end - self.position:
            return self.fail(at, _ENDS_EARLY)
        if is_string and not is_text(self.data, self.position, self.position + size):
            return self.fail(at, _NOT_UTF8)
        self.position += size
        return True

    def skip(self, at: int, size: int) -> bool:
        if size > self.end - self.position:
            return self.fail(at, _ENDS_EARLY)
        self.position += size
        return True

    def varint(self, at: int) -> int:
        """Read a zigzag number of at most 64 bits. Sets `why` if it is malformed."""
        value = 0
        shift = 0
        while self.position < self.end:
            byte = self.data[self.position]
            self.position += 1
            if shift == _LAST_SHIFT and byte > 1:
                self.fail(at, _BAD_VARINT)
                return 0
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                half = value >> 1
                return ~half if value & 1 else half
            shift += 7
        self.fail(at, _ENDS_EARLY)
        return 0

    def fail(self, at: int, why: int) -> bool:
        self.why = why
        self.type_at = at
        return False


def value_in(plan: "array[int]", root: int, data: bytes, details: "Details") -> tuple[object, int]:
    """Return the value of the type at `root`, and a DatumFault or 0."""
    datum = Datum(plan, data, 0)
    found = datum.built(root, 0, details)
    return found, datum.why


def read_whole(plan: "array[int]", root: int, data: bytes) -> Datum | None:
    """Return None if the data is exactly one value of the type at `root`. Otherwise return the walk, with its fault."""
    datum = Datum(plan, data, 0)
    return None if datum.is_whole(root) else datum
