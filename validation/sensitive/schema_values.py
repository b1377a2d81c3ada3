"""Masks values by paths and by tags, using a schema that names their fields: Avro, Protobuf and JSON Schema."""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from sluicegate.validation.rules.avro.schema import AnyBytes, AvroContent
from sluicegate.validation.rules.json.schema import JsonSchemaContent
from sluicegate.validation.rules.protobuf.indexed_schema import IndexedProtobufContent
from sluicegate.validation.rules.protobuf.schema import ProtobufContent
from sluicegate.validation.rules.rule import RuledRecord, SchemaError
from sluicegate.validation.rules.schemas.content import CompiledHere, Content
from sluicegate.validation.rules.schemas.schema_expression import SchemaOfRecord
from sluicegate.validation.sensitive.avro_fields import mask_avro
from sluicegate.validation.sensitive.avro_records import AvroRecords
from sluicegate.validation.sensitive.edits import Nodes, Unmaskable
from sluicegate.validation.sensitive.json_fields import mask_json
from sluicegate.validation.sensitive.kept import KeptParts
from sluicegate.validation.sensitive.paths import FieldPolicy
from sluicegate.validation.sensitive.protobuf_fields import NotOfMessage, mask_protobuf
from sluicegate.validation.sensitive.protobuf_messages import ProtobufMessages
from sluicegate.validation.sensitive.tags import (
    FieldWithTags,
    tagged_fields_of_avro,
    tagged_fields_of_json,
    tagged_fields_of_protobuf,
    tagged_json,
)
from sluicegate.validation.sensitive.values import MaskedValue
from sluicegate.validation.sensitive.writing import ValueWriter

_MOST_SCHEMAS = 100
_MOST_KEPT = 100_000
_Worked = Callable[[int], None]
_NewWriter = Callable[[], ValueWriter]
_Places = AvroRecords | ProtobufMessages | Nodes
"""A schema's cached parts: Avro's records, Protobuf's messages, or the places of JSON values."""


class SchemaValues:
    """A topic's values, each with the schema that `schemas` finds for its record."""

    is_slow = True

    def __init__(self, policies: Sequence[FieldPolicy], root: Nodes, schemas: SchemaOfRecord) -> None:
        self._policies = tuple(policies)
        self._root = root
        self._schemas = schemas
        self._kept = KeptParts()
        self._by_content: WeakKeyDictionary[Content, _Places] = WeakKeyDictionary()

    def masked(self, record: RuledRecord, worked: _Worked, most_bytes: int) -> MaskedValue | None:
        """Return the masked value, or None if nothing changes.

        Raises Unmaskable, Outage, SchemaError, OverLimit and the errors of `worked`.
        """
        value = record.value
        if value is None:
            return None
        found = self._schemas.content(record)
        if found is None:
            raise Unmaskable("the value names no schema that is known, or is encrypted, so its fields cannot be found")
        content, data, name = found
        more = len(value) - len(data)
        try:
            writer = self._written(content, lambda: ValueWriter(data, most_bytes, worked, beside=more), data, worked)
        except SchemaError as error:
            raise SchemaError(f"{name} cannot be used: {error}") from error
        if writer is None or not writer.names:
            return None
        worked(len(data))
        if value.endswith(data):
            masked = writer.written(before=value[:more])
        elif data.endswith(value):  # a header names the message; then Protobuf data begin with its name
            masked = writer.written(begin=-more)
        else:
            raise Unmaskable(
                "the value is compressed by its serializer, so its fields cannot be masked; switch that off"
            )
        return None if masked is None else MaskedValue(masked, writer.names)

    def _written(self, content: Content, new: _NewWriter, data: bytes, worked: _Worked) -> ValueWriter | None:
        """Return the output for data with a schema, or None without sensitive fields. Raises the errors of `masked`."""
        here = _here(content)
        if isinstance(here, AnyBytes):
            return None
        places = self._by_content.get(content)
        if places is None:
            places = self._compiled(here, worked)
            self._keep(content, places)
        writer = new()
        if isinstance(places, AvroRecords):
            mask_avro(data, places, self._root, writer, worked)
        elif isinstance(places, ProtobufMessages):
            assert isinstance(here, ProtobufContent | IndexedProtobufContent)
            writer = self._protobuf_written(here, places, new, data, worked)
        else:
            mask_json(data, 0, places, writer, worked)
        if self._kept.size > _MOST_KEPT:
            self._forget()
        return writer

    def _compiled(self, here: Content, worked: _Worked) -> _Places:
        """Return the parts of a schema to cache. Raises SchemaError."""
        if isinstance(here, AvroContent):
            return AvroRecords(here.plan, self._policies, self._kept)
        if isinstance(here, JsonSchemaContent):
            return (*self._root, *tagged_json(here.schema, here.references, self._policies, self._kept, worked))
        if isinstance(here, ProtobufContent | IndexedProtobufContent):
            return ProtobufMessages(self._policies, self._kept)
        raise SchemaError("the fields cannot be found")

    def _keep(self, content: Content, places: _Places) -> None:
        if len(self._by_content) >= _MOST_SCHEMAS:
            self._forget()
        self._by_content[content] = places

    def _forget(self) -> None:
        self._by_content.clear()
        self._kept = KeptParts()

    def _protobuf_written(
        self,
        content: ProtobufContent | IndexedProtobufContent,
        messages: ProtobufMessages,
        new: _NewWriter,
        data: bytes,
        worked: _Worked,
    ) -> ValueWriter:
        """Return the output.

        If data may have two message types, both must produce the same output; otherwise the data are rejected.
        """
        contents, begin = content.named(data)
        found: ValueWriter | None = None
        # Stores a string, because a stored error and the frame in its traceback would refer to each other and never be
        # freed.
        why = "the value does not match its Protobuf schema: its message indexes lead to no message of it"
        for each in contents:
            writer = new()
            try:
                mask_protobuf(data, begin, messages.fields(each.descriptor, self._root), writer, worked)
            except NotOfMessage as error:
                why = str(error)
                continue
            if found is not None and not found.is_same(writer):
                raise Unmaskable("the value may be of two message types of its schema, with other sensitive fields")
            found = found or writer
        if found is None:
            raise Unmaskable(why)
        return found


def tagged_fields(content: Content) -> list[FieldWithTags]:
    """Return a schema's tagged fields. Raises SchemaError if they cannot be found."""
    here = _here(content)
    if isinstance(here, AvroContent):
        return list(tagged_fields_of_avro(here.plan))
    if isinstance(here, JsonSchemaContent):
        return list(tagged_fields_of_json(here.schema, here.references))
    if isinstance(here, ProtobufContent):
        return list(tagged_fields_of_protobuf([here.descriptor]))
    return list(tagged_fields_of_protobuf(here.descriptors)) if isinstance(here, IndexedProtobufContent) else []


def _here(content: Content) -> Content:
    """Return the schema as compiled in this process. Raises SchemaError."""
    here: Content | None = content.compiled_here if isinstance(content, CompiledHere) else content
    if here is None:
        raise SchemaError("compiling the schema takes too long for the proxy itself, which masks the values")
    return here
