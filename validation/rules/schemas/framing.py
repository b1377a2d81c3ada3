"""Reads how the serializers of each kind of registry name a record's schema: before its data, or in a header."""

import zlib
from typing import Final, Protocol
from uuid import UUID

from sluicegate.validation.rules.protobuf.message_names import encoded_name
from sluicegate.validation.rules.rule import Header, Side, StepBudget
from sluicegate.validation.rules.schemas.wire_format import (
    ApicurioId,
    IdKind,
    SchemaId,
    data_after_id,
    has_schema_id,
    header_of,
    id_in_header,
    id_in_prefix,
    last_header_value,
)

_OTHER_REGISTRY: Final = "was it registered at another one?"
_USE_ID, _IN_HEADERS = "apicurio.registry.use-id", "apicurio.registry.headers.enabled"


class SchemaFraming(Protocol):
    """The framing of one kind of registry. `id_hint` is advice to show if the registry does not know an id."""

    id_hint: str

    def subject_key(self, side: Side) -> str:
        """Return the serializers' configuration key that names the subject."""

    def named_by(
        self, side: Side, headers: tuple[Header, ...], data: bytes, budget: StepBudget
    ) -> tuple[SchemaId, bytes] | str:
        """Return the schema id and the data without it, or a message if the id is wrong or missing.

        Spends steps like RecordRule.fault.
        """


class ConfluentFraming:
    """Confluent's framing: a zero byte and four bytes, or the header `__key_schema_id` or `__value_schema_id`."""

    id_hint = _OTHER_REGISTRY

    def subject_key(self, side: Side) -> str:
        """Return the serializers' configuration key that names the subject."""
        return f"{side.value}.subject.name.strategy"

    def named_by(
        self, side: Side, headers: tuple[Header, ...], data: bytes, _budget: StepBudget
    ) -> tuple[SchemaId, bytes] | str:
        """Return the schema id and the data without it, or a message if the id is wrong or missing."""
        header = header_of(side)
        named = last_header_value(headers, header) if headers else None
        if named is not None:
            schema_id = id_in_header(named)
            if schema_id is None:
                return f"the header {header.decode()} contains neither a schema id nor a GUID"
            return schema_id, data_after_id(named) + data  # Protobuf's message indexes follow the id
        if has_schema_id(data):
            return id_in_prefix(data), data_after_id(data)
        return (
            f"the {side.value} names no schema: write it with a serializer of the schema registry, which writes a zero "
            f"byte and the schema's id before the data, or adds a header {header.decode()}"
        )


_ZERO = 0
_LONG_BYTES, _INT_BYTES = 8, 4
_PROTOBUF_TYPE = b"apicurio.protobuf.type"


class ApicurioFraming:
    """Apicurio's framing: a zero byte and an id of eight or four bytes, or headers.

    The headers are `apicurio.value.globalId` and `….contentId`. `kind` is the kind of the id before the data. Ids start
    at 1, so four zero bytes are the beginning of an id of eight bytes.
    """

    def __init__(self, kind: IdKind) -> None:
        self._kind = kind
        self.id_hint = f"{_OTHER_REGISTRY} Does id: {kind.value} of the registry fit the serializer's {_USE_ID}?"

    def subject_key(self, _side: Side) -> str:
        """Return the serializers' configuration key that names the artifact."""
        return "apicurio.registry.artifact-resolver-strategy"

    def named_by(
        self, side: Side, headers: tuple[Header, ...], data: bytes, _budget: StepBudget
    ) -> tuple[SchemaId, bytes] | str:
        """Return the schema id and the data without it, or a message if the id is wrong or missing."""
        for kind in IdKind:
            header = f"apicurio.{side.value}.{kind.value}"
            named = last_header_value(headers, header.encode()) if headers else None
            if named is not None:
                if len(named) != _LONG_BYTES:
                    return f"the header {header} does not contain an id of eight bytes"
                # Key and value use the same header. The serializer writes it first for the key and then for the value.
                message = last_header_value(headers[::-1] if side is Side.KEY else headers, _PROTOBUF_TYPE)
                before = b"" if message is None else encoded_name(message)
                return ApicurioId(kind, int.from_bytes(named)), before + data
        if data[:1] == bytes([_ZERO]):
            size = _LONG_BYTES if data[1 : 1 + _INT_BYTES] == bytes(_INT_BYTES) else _INT_BYTES
            if len(data) > size:
                return ApicurioId(self._kind, int.from_bytes(data[1 : 1 + size])), data[1 + size :]
        return (
            f"the {side.value} names no schema: write it with a serializer of Apicurio Registry, which writes a zero "
            f"byte and the schema's id before the data, or with {_IN_HEADERS} adds a header "
            f"apicurio.{side.value}.globalId"
        )


def is_json_encoded(framing: SchemaFraming, side: Side, headers: tuple[Header, ...]) -> bool:
    """Return whether Avro data are in JSON encoding, according to a header from Apicurio's serializer."""
    if not headers or not isinstance(framing, ApicurioFraming):
        return False
    return last_header_value(headers, f"apicurio.{side.value}.encoding".encode()) == b"JSON"


_GLUE_VERSION = 3
_UNCOMPRESSED, _ZLIB = 0, 5
_GLUE_BYTES = 18
_MOST_PLAIN_BYTES = 16 << 20
_MOST_RATIO = 1032  # zlib's maximum ratio (https://zlib.net/zlib_tech.html)
_BYTES_OF_STEP = 40  # zlib writes at least 400 MB/s


class GlueFraming:
    """AWS Glue's framing: a byte 3, a byte for the compression, and the 16-byte UUID of a schema version.

    The compression is 0 for none and 5 for zlib.
    """

    id_hint = _OTHER_REGISTRY

    def subject_key(self, _side: Side) -> str:
        """Return the serializers' configuration key that names the schema."""
        return "schemaNameGenerationClass"

    def named_by(
        self, side: Side, _headers: tuple[Header, ...], data: bytes, budget: StepBudget
    ) -> tuple[SchemaId, bytes] | str:
        """Return the schema id and the data without it, or a message if the id is wrong or missing."""
        if len(data) < _GLUE_BYTES or data[0] != _GLUE_VERSION or data[1] not in (_UNCOMPRESSED, _ZLIB):
            return (
                f"the {side.value} names no schema: write it with a serializer of AWS Glue Schema Registry, which "
                f"writes a byte 3, a byte 0 or 5 and the schema version's UUID before the data"
            )
        schema_id, body = UUID(bytes=data[2:_GLUE_BYTES]), data[_GLUE_BYTES:]
        if data[1] == _UNCOMPRESSED:
            return schema_id, body
        budget.spend(min(len(data) * _MOST_RATIO, _MOST_PLAIN_BYTES) // _BYTES_OF_STEP)
        inflater = zlib.decompressobj()
        try:
            plain = inflater.decompress(body, _MOST_PLAIN_BYTES)
        except zlib.error:
            return (
                f"the {side.value} cannot be decompressed as zlib, although the byte 5 before it declares this format"
            )
        if inflater.eof:
            return schema_id, plain
        if inflater.unconsumed_tail or len(plain) == _MOST_PLAIN_BYTES:
            return f"the {side.value} has more than {_MOST_PLAIN_BYTES} bytes when it is decompressed"
        return f"the {side.value} ends within its zlib stream"
