"""Masks values whose schema names their fields: Avro, Protobuf and JSON Schema, by paths and by the schema's tags."""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from sluicegate.validation.rules.avro.schema import AnyBytes, AvroContent
from sluicegate.validation.rules.json.schema import JsonSchemaContent
from sluicegate.validation.rules.protobuf.indexed_schema import IndexedProtobufContent
from sluicegate.validation.rules.protobuf.schema import ProtobufContent
from sluicegate.validation.rules.rule import RuledRecord, SchemaError
from sluicegate.validation.rules.schemas.content import CompiledHere, Content
from sluicegate.validation.rules.schemas.schema_expression import SchemaOfRecord
from sluicegate.validation.sensitive.avro_fields import edits_of_avro
from sluicegate.validation.sensitive.edits import Edits, Nodes, Unmaskable
from sluicegate.validation.sensitive.json_fields import edits_of_json
from sluicegate.validation.sensitive.paths import SensitiveFields
from sluicegate.validation.sensitive.protobuf_fields import MessageFields, NotOfMessage, edits_of_protobuf
from sluicegate.validation.sensitive.tags import (
    ProtobufTags,
    TaggedField,
    tagged_avro,
    tagged_fields_of_avro,
    tagged_fields_of_json,
    tagged_fields_of_protobuf,
    tagged_json,
)
from sluicegate.validation.sensitive.values import MaskedValue

_MOST_KEPT = 100
_Editor = Callable[[bytes, Callable[[int], None]], Edits]
"""Finds the replacements in data of one schema."""


class SchemaValues:
    """The values of a topic, each with the schema that `schemas` finds for its record."""

    is_slow = True

    def __init__(self, policies: Sequence[SensitiveFields], root: Nodes, schemas: SchemaOfRecord) -> None:
        self._policies = tuple(policies)
        self._root = root
        self._schemas = schemas
        self._by_content: WeakKeyDictionary[Content, _Editor] = WeakKeyDictionary()

    def masked(self, record: RuledRecord, worked: Callable[[int], None]) -> MaskedValue | None:
        """Return the masked value; None if nothing changes. Raises Unmaskable, Outage and SchemaError."""
        value = record.value
        if value is None:
            return None
        found = self._schemas.content(record)
        if found is None:
            raise Unmaskable("the value names no schema that is known, so its fields cannot be found")
        content, data, name = found
        try:
            edits = (self._by_content.get(content) or self._compiled(content))(data, worked)
        except SchemaError as error:
            raise SchemaError(f"{name} cannot be used: {error}") from error
        if not edits.count:
            return None
        masked, more = edits.applied(data), len(value) - len(data)
        if value.endswith(data):
            return MaskedValue(value[:more] + masked, edits.names)
        if data.endswith(value):  # a header names the message of Protobuf data, which then have the name before them
            return MaskedValue(masked[-more:], edits.names)
        raise Unmaskable("the value is compressed by its serializer, so its fields cannot be masked; switch that off")

    def _compiled(self, content: Content) -> _Editor:
        """Return the editor for data of a schema, and keep it. Raises SchemaError."""
        if len(self._by_content) >= _MOST_KEPT:
            self._by_content.clear()
        self._by_content[content] = found = self._editor(content)
        return found

    def _editor(self, content: Content) -> _Editor:
        here = _here(content)
        root, policies = self._root, self._policies
        if isinstance(here, AvroContent):
            plan = here.plan
            tagged = tagged_avro(plan, policies)
            return lambda data, worked: edits_of_avro(data, plan, root, tagged, worked)
        if isinstance(here, JsonSchemaContent):
            nodes = (*root, *tagged_json(here.schema, here.references, policies))
            return lambda data, worked: edits_of_json(data, nodes, worked)
        if isinstance(here, ProtobufContent | IndexedProtobufContent):
            return _ProtobufEditor(here, root, ProtobufTags(policies)).edits
        if isinstance(here, AnyBytes):
            return lambda _data, _worked: Edits()
        raise SchemaError("its fields cannot be found")


def tagged_fields(content: Content) -> list[TaggedField]:
    """Return the tagged fields of a schema. Raises SchemaError if they cannot be found."""
    here = _here(content)
    if isinstance(here, AvroContent):
        return list(tagged_fields_of_avro(here.plan))
    if isinstance(here, JsonSchemaContent):
        return list(tagged_fields_of_json(here.schema, here.references))
    if isinstance(here, ProtobufContent):
        return list(tagged_fields_of_protobuf([here.descriptor]))
    return list(tagged_fields_of_protobuf(here.descriptors)) if isinstance(here, IndexedProtobufContent) else []


def _here(content: Content) -> Content:
    """Return the schema that is compiled in this process. Raises SchemaError."""
    here: Content | None = content.compiled_here if isinstance(content, CompiledHere) else content
    if here is None:
        raise SchemaError("compiling it takes too long for the proxy itself, which masks its values")
    return here


class _ProtobufEditor:
    def __init__(self, content: ProtobufContent | IndexedProtobufContent, root: Nodes, tags: ProtobufTags) -> None:
        self._content = content
        self._root = root
        self._tags = tags
        self._fields = MessageFields()

    def edits(self, data: bytes, worked: Callable[[int], None]) -> Edits:
        """Return the replacements. Data of two possible message types must have the same ones by both, and be allowed
        by both.
        """
        contents, begin = self._content.named(data)
        found: list[Edits] = []
        refused = Unmaskable("the value is not Protobuf of its schema: its message indexes lead to no message of it")
        for content in contents:
            known = (self._root, self._tags.of, self._fields, worked)
            try:
                found.append(edits_of_protobuf(data, begin, content.descriptor, *known))
            except NotOfMessage as error:
                refused = error
        if not found:
            raise refused
        if len({each.applied(data) for each in found}) > 1:
            raise Unmaskable("the value may be of two message types of its schema, with other sensitive fields")
        return found[0]
