"""How the serializers of each kind of registry name a record's schema: before its data, or in a header."""

from typing import Protocol

from sluicegate.validation.rules.rule import Header, Side
from sluicegate.validation.rules.schemas.wire_format import (
    ApicurioId,
    IdKind,
    SchemaId,
    behind_id,
    has_schema_id,
    header_of,
    id_before,
    id_in_header,
    last_of,
)


class Framing(Protocol):
    """The framing of one kind of registry."""

    def named_by(self, side: Side, headers: tuple[Header, ...], data: bytes) -> tuple[SchemaId, bytes] | str:
        """Return the schema's id and the data without it; or a text if the id is wrong or missing."""


class ConfluentFraming:
    """A zero byte and four bytes, or the header `__key_schema_id` or `__value_schema_id`."""

    def named_by(self, side: Side, headers: tuple[Header, ...], data: bytes) -> tuple[SchemaId, bytes] | str:
        """Return the schema's id and the data without it; or a text if the id is wrong or missing."""
        header = header_of(side)
        named = last_of(headers, header) if headers else None
        if named is not None:
            schema_id = id_in_header(named)
            if schema_id is None:
                return f"the header {header.decode()} holds neither a schema's id nor a GUID"
            return schema_id, behind_id(named) + data  # Protobuf's message indexes come with the id
        if has_schema_id(data):
            return id_before(data), behind_id(data)
        return (
            f"the {side.value} names no schema: write it with a serializer of the schema registry, which puts a "
            f"zero byte and the schema's id before it or a header {header.decode()} beside it"
        )


_ZERO = 0
_LONG_BYTES, _INT_BYTES = 8, 4


class ApicurioFraming:
    """A zero byte and an id of eight bytes or of four, or the headers `apicurio.value.globalId` and `….contentId`.

    `kind`: what the id before the data is. Ids begin with 1, so four zero bytes begin an id of eight.
    """

    def __init__(self, kind: IdKind) -> None:
        self._kind = kind

    def named_by(self, side: Side, headers: tuple[Header, ...], data: bytes) -> tuple[SchemaId, bytes] | str:
        """Return the schema's id and the data without it; or a text if the id is wrong or missing."""
        for kind in IdKind:
            header = f"apicurio.{side.value}.{kind.value}"
            named = last_of(headers, header.encode()) if headers else None
            if named is not None:
                if len(named) != _LONG_BYTES:
                    return f"the header {header} does not hold an id of eight bytes"
                return ApicurioId(kind, int.from_bytes(named)), data
        if data[:1] == bytes([_ZERO]):
            size = _LONG_BYTES if data[1 : 1 + _INT_BYTES] == bytes(_INT_BYTES) else _INT_BYTES
            if len(data) > size:
                return ApicurioId(self._kind, int.from_bytes(data[1 : 1 + size])), data[1 + size :]
        return (
            f"the {side.value} names no schema: write it with a serializer of Apicurio Registry, which puts a zero "
            f"byte and the schema's id before it or a header apicurio.{side.value}.globalId beside it"
        )
