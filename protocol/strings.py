"""Encodes the strings in messages."""

from struct import Struct

from sluicegate.protocol.errors import SchemaMisuse
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.walk import MAX_STRING_BYTES

_INT16 = Struct(">h")


def encode_string(text: str | None, flexible: bool) -> bytes:
    """Return a string, or null, preceded by its length. Raises SchemaMisuse if it is longer than Kafka allows."""
    if text is None:
        return b"\0" if flexible else _INT16.pack(-1)
    data = text.encode()
    if len(data) > MAX_STRING_BYTES:
        raise SchemaMisuse(f"a string of {len(data)} bytes, more than {MAX_STRING_BYTES}")
    return (unsigned_varint(len(data) + 1) if flexible else _INT16.pack(len(data))) + data
