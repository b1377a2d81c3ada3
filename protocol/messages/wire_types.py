"""Builds the constructs of Kafka's messages: sized strings, arrays, bodies with tagged fields.

Old versions prefix strings with an int16, and bytes and arrays with an int32; -1 is null. Flexible versions (KIP-482)
use an unsigned varint of the length plus one, with 0 for null, and end each struct with tagged fields. Before memory is
allocated, every count is compared with the remaining bytes, and with the limit of the whole message.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from construct import (
    Bytes,
    Construct,
    Flag,
    FormatFieldError,
    Int8sb,
    Int16sb,
    Int32sb,
    Int64sb,
    StreamError,
    stream_write,
)

from sluicegate.protocol.integers import read_unsigned_varint, unsigned_varint
from sluicegate.protocol.walk import MAX_STRING_BYTES

INTEGERS: dict[str, Construct] = {"int8": Int8sb, "int16": Int16sb, "int32": Int32sb, "int64": Int64sb}
BOOL: Construct = Flag
UUID_BYTES: Construct = Bytes(16)
_SMALLEST_TAGGED_FIELD = 2  # a tag and a size


class MessageReader(BytesIO):
    """The bytes of a message, and the number of array items and tagged fields that it may still contain."""

    def __init__(self, data: bytes | bytearray | memoryview, max_elements: int) -> None:
        super().__init__(data)
        self.size = len(data)
        self.elements_left = max_elements

    def left(self) -> int:
        """Return how many bytes remain unread."""
        return self.size - self.tell()

    def take_elements(self, count: int, smallest: int, path: str) -> None:
        """Count elements of at least `smallest` bytes each, before they are read.

        Raises an error if there are too many.
        """
        if count * smallest > self.left():
            raise StreamError(f"{count} elements, but only {self.left()} bytes are left", path=path)
        if count > self.elements_left:
            raise FormatFieldError(f"{count} more elements than the {self.elements_left} that are left", path=path)
        self.elements_left -= count

    def read_data(self, length: int, path: str) -> bytes:
        """Return exactly `length` bytes. A longer claim is rejected before anything is allocated."""
        if length > self.left():
            raise StreamError(f"a length of {length}, but only {self.left()} bytes are left", path=path)
        return self.read(length)


def _smallest(wire: Construct) -> int:
    """Return the minimum size of a value (bytes)."""
    size: int = wire.smallest if isinstance(wire, _Counted | Optional | Body) else wire.sizeof()
    return size


class UnsignedVarint(Construct):  # type: ignore[misc]  # construct ships no types
    """An unsigned varint of at most five bytes. Construct's own type has no limit."""

    def _parse(self, stream: MessageReader, context: Any, path: str) -> int:
        value, end = read_unsigned_varint(stream.getbuffer(), stream.tell())
        stream.seek(end)
        return value

    def _build(self, obj: int, stream: BytesIO, context: Any, path: str) -> Any:
        data = unsigned_varint(obj)
        stream_write(stream, data, len(data), path)
        return obj


VARINT = UnsignedVarint()


class _Counted(Construct):  # type: ignore[misc]  # construct ships no types
    """A length prefix, compact or not, that can also encode null."""

    def __init__(self, prefix: Construct, compact: bool, nullable: bool) -> None:
        super().__init__()
        self._prefix = VARINT if compact else prefix
        self._bias = 1 if compact else 0
        self._nullable = nullable
        self.smallest = 1 if compact else prefix.sizeof()

    def _read_length(self, stream: MessageReader, context: Any, path: str) -> int | None:
        length: int = self._prefix._parsereport(stream, context, path) - self._bias
        if length < 0:
            if length < -1 or not self._nullable:
                raise FormatFieldError(f"a length of {length} where null is not allowed", path=path)
            return None
        return length

    def _write_length(self, length: int | None, stream: BytesIO, context: Any, path: str) -> None:
        if length is None and not self._nullable:
            raise FormatFieldError("null where null is not allowed", path=path)
        self._prefix._build((-1 if length is None else length) + self._bias, stream, context, path)


class Sized(_Counted):
    """A string (UTF-8) or bytes, preceded by their length."""

    def __init__(self, prefix_bytes: int, compact: bool, nullable: bool, text: bool) -> None:
        super().__init__(Int16sb if prefix_bytes == 2 else Int32sb, compact, nullable)
        self._text = text

    def _parse(self, stream: MessageReader, context: Any, path: str) -> str | bytes | None:
        length = self._read_length(stream, context, path)
        if length is None:
            return None
        if not self._text:
            return stream.read_data(length, path)
        if length > MAX_STRING_BYTES:
            raise FormatFieldError(f"a string of {length} bytes, more than {MAX_STRING_BYTES}", path=path)
        try:
            return stream.read_data(length, path).decode()
        except UnicodeDecodeError as error:
            raise FormatFieldError("a string is not UTF-8", path=path) from error

    def _build(self, obj: str | bytes | None, stream: BytesIO, context: Any, path: str) -> Any:
        data = obj.encode() if isinstance(obj, str) else obj
        self._write_length(None if data is None else len(data), stream, context, path)
        if data:
            stream_write(stream, data, len(data), path)
        return obj


class Items(_Counted):
    """An array of `item`s, preceded by its count."""

    def __init__(self, item: Construct, compact: bool, nullable: bool) -> None:
        super().__init__(Int32sb, compact, nullable)
        self._item = item
        self._smallest_item = _smallest(item)

    def _parse(self, stream: MessageReader, context: Any, path: str) -> list[Any] | None:
        count = self._read_length(stream, context, path)
        if count is None:
            return None
        stream.take_elements(count, self._smallest_item, path)
        return [self._item._parsereport(stream, context, path) for _ in range(count)]

    def _build(self, obj: list[Any] | None, stream: BytesIO, context: Any, path: str) -> Any:
        self._write_length(None if obj is None else len(obj), stream, context, path)
        for item in obj or ():
            self._item._build(item, stream, context, path)
        return obj


class Optional(Construct):  # type: ignore[misc]  # construct ships no types
    """A struct that may be null. Null is the byte -1; otherwise the byte 1 precedes the struct."""

    smallest = 1

    def __init__(self, body: Construct) -> None:
        super().__init__()
        self._body = body

    def _parse(self, stream: MessageReader, context: Any, path: str) -> Any:
        present = Int8sb._parsereport(stream, context, path)
        return self._body._parsereport(stream, context, path) if present >= 0 else None

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        Int8sb._build(-1 if obj is None else 1, stream, context, path)
        if obj is not None:
            self._body._build(obj, stream, context, path)
        return obj


@dataclass(frozen=True, slots=True)
class BodyField:
    """A field, identified by its position. `default` is empty, or contains the value to write if none is given."""

    name: str
    wire: Construct
    default: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TaggedField:
    """A tagged field. It is written only if its value differs from the default."""

    name: str
    wire: Construct
    default: Any


class Body(Construct):  # type: ignore[misc]  # construct ships no types
    """Fields in order, then tagged fields if `tagged` is not None."""

    def __init__(
        self,
        fields: tuple[BodyField, ...],
        tagged: dict[int, TaggedField] | None,
        known: frozenset[str],
        unknown_tags: str,
    ) -> None:
        super().__init__()
        self._fields = fields
        self._tagged = tagged
        self._known = known
        self._unknown_tags = unknown_tags
        self.smallest = sum(_smallest(field.wire) for field in fields) + (tagged is not None)

    def _parse(self, stream: MessageReader, context: Any, path: str) -> dict[str, Any]:
        value = {
            field.name: field.wire._parsereport(stream, context, f"{path} -> {field.name}") for field in self._fields
        }
        if self._tagged is not None:
            self._parse_tags(self._tagged, value, stream, context, path)
        return value

    def _parse_tags(
        self, tagged: dict[int, TaggedField], value: dict[str, Any], stream: MessageReader, context: Any, path: str
    ) -> None:
        value.update({field.name: field.default for field in tagged.values()})
        unknown = {}
        count = VARINT._parsereport(stream, context, path)
        stream.take_elements(count, _SMALLEST_TAGGED_FIELD, path)
        for _ in range(count):
            tag = VARINT._parsereport(stream, context, path)
            data = stream.read_data(VARINT._parsereport(stream, context, path), path)
            if tag in tagged:
                value[tagged[tag].name] = self._parse_tagged(tagged[tag], data, stream, context, path)
            else:
                unknown[tag] = data
        if unknown:
            value[self._unknown_tags] = unknown

    def _parse_tagged(self, field: TaggedField, data: bytes, stream: MessageReader, context: Any, path: str) -> Any:
        """Parse a tagged field's value. Its elements count toward the message's limit."""
        inner = MessageReader(data, stream.elements_left)
        value = field.wire._parsereport(inner, context, f"{path} -> {field.name}")
        if inner.left():
            raise FormatFieldError(f"{inner.left()} bytes after a tagged field's end", path=path)
        stream.elements_left = inner.elements_left
        return value

    def _build(self, obj: Mapping[str, Any], stream: BytesIO, context: Any, path: str) -> Any:
        unknown = set(obj) - self._known
        if unknown:
            raise KeyError(f"no such field: {', '.join(sorted(unknown))}")
        for field in self._fields:
            value = obj[field.name] if field.name in obj or not field.default else field.default[0]
            field.wire._build(value, stream, context, f"{path} -> {field.name}")
        if self._tagged is not None:
            self._build_tags(self._tagged, obj, stream, context, path)
        return obj

    def _build_tags(
        self, tagged: dict[int, TaggedField], obj: Mapping[str, Any], stream: BytesIO, context: Any, path: str
    ) -> None:
        present: dict[int, bytes] = dict(obj.get(self._unknown_tags, {}))
        for tag, field in tagged.items():
            value = obj.get(field.name, field.default)
            if value != field.default:
                present[tag] = field.wire.build(value)
        VARINT._build(len(present), stream, context, path)
        for tag in sorted(present):
            VARINT._build(tag, stream, context, path)
            VARINT._build(len(present[tag]), stream, context, path)
            stream_write(stream, present[tag], len(present[tag]), path)
