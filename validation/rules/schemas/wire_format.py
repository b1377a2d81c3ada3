"""How a record says which schema it was written with: before its data, or in a header (Confluent's serializers).

Before the data stand a zero byte and the id as four bytes, most significant first. In the header `__key_schema_id` or
`__value_schema_id` stands the same, or a byte of one and the sixteen of a GUID.
"""

from uuid import UUID

from sluicegate.validation.rules.rule import Header, Side

ID_BYTES = 5
_GUID_BYTES = 17
_ID_MAGIC, _GUID_MAGIC = 0, 1
_HEADERS = {Side.KEY: b"__key_schema_id", Side.VALUE: b"__value_schema_id"}

SchemaId = int | UUID


def has_schema_id(data: bytes) -> bool:
    """Whether an id stands before the data."""
    return len(data) >= ID_BYTES and data[0] == _ID_MAGIC


def id_before(data: bytes) -> int:
    """The id that stands before the data."""
    return int.from_bytes(data[1:ID_BYTES])


def header_of(side: Side) -> bytes:
    """The header that names the schema of a key or a value."""
    return _HEADERS[side]


def last_of(headers: tuple[Header, ...], name: bytes) -> bytes | None:
    """The value of the last header of that name, which is the one that counts; None where there is none."""
    found = None
    for header, value in headers:
        if header == name:
            found = value
    return found


def id_in_header(value: bytes) -> SchemaId | None:
    """What a header names; None where that is neither an id nor a GUID. Further bytes are Protobuf's, or no one's."""
    if len(value) >= ID_BYTES and value[0] == _ID_MAGIC:
        return int.from_bytes(value[1:ID_BYTES])
    if len(value) >= _GUID_BYTES and value[0] == _GUID_MAGIC:
        return UUID(bytes=value[1:_GUID_BYTES])
    return None


def behind_id(named: bytes) -> bytes:
    """What stands behind the id or GUID that `named` begins with."""
    return named[ID_BYTES if named[0] == _ID_MAGIC else _GUID_BYTES :]
