"""Reads a record's schema id, before its data or in a header, as Confluent's serializers write it.

Before the data, the id is a zero byte and four bytes, big-endian. The header `__key_schema_id` or `__value_schema_id`
contains the same bytes, or a byte 1 and the 16 bytes of a GUID.
"""

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from sluicegate.validation.rules.rule import Header, Side

ID_BYTES = 5
_GUID_BYTES = 17
_ID_MAGIC, _GUID_MAGIC = 0, 1
_HEADERS = {Side.KEY: b"__key_schema_id", Side.VALUE: b"__value_schema_id"}


class IdKind(Enum):
    """The two kinds of numbers that Apicurio Registry gives to a schema."""

    GLOBAL = "globalId"
    CONTENT = "contentId"


@dataclass(frozen=True, slots=True)
class ApicurioId:
    """A schema's number in Apicurio Registry."""

    kind: IdKind
    number: int

    def __str__(self) -> str:
        return f"{self.kind.value} {self.number}"


SchemaId = int | UUID | ApicurioId


def has_schema_id(data: bytes) -> bool:
    """Return whether the data begin with an id."""
    return len(data) >= ID_BYTES and data[0] == _ID_MAGIC


def id_in_prefix(data: bytes) -> int:
    """Return the id before the data."""
    return int.from_bytes(data[1:ID_BYTES])


def header_of(side: Side) -> bytes:
    """Return the name of the header with a key's or a value's schema id."""
    return _HEADERS[side]


def last_header_value(headers: tuple[Header, ...], name: bytes) -> bytes | None:
    """Return the value of the last header with that name, or None."""
    found = None
    for header, value in headers:
        if header == name:
            found = value
    return found


def id_in_header(value: bytes) -> SchemaId | None:
    """Return the id or GUID in a header's value, or None.

    Any further bytes are Protobuf's message indexes, or are ignored.
    """
    if len(value) >= ID_BYTES and value[0] == _ID_MAGIC:
        return int.from_bytes(value[1:ID_BYTES])
    if len(value) >= _GUID_BYTES and value[0] == _GUID_MAGIC:
        return UUID(bytes=value[1:_GUID_BYTES])
    return None


def data_after_id(named: bytes) -> bytes:
    """Return the bytes after the id or GUID at the start of `named`."""
    return named[ID_BYTES if named[0] == _ID_MAGIC else _GUID_BYTES :]
