"""What a registry has of a schema, compiled."""

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.proxy.registry.protoc import descriptor_set_of
from sluicegate.validation.rules.avro_schema import avro_content
from sluicegate.validation.rules.content import Content
from sluicegate.validation.rules.json_schema import json_schema_content
from sluicegate.validation.rules.protobuf_schema import indexed_protobuf_content
from sluicegate.validation.rules.schema_language import SchemaLanguage

_OWN_NAME = "registered-schema.proto"


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another names: by `name`."""

    name: str
    text: str


def registered_content(language: SchemaLanguage, text: str, references: Sequence[Reference]) -> Content:
    """A registered schema, compiled. `references`: each after what it names itself. Raises SchemaUnusable."""
    if language is SchemaLanguage.AVRO:
        return avro_content(text, [reference.text for reference in references])
    named = {reference.name: reference.text for reference in references}
    if language is SchemaLanguage.JSON:
        return json_schema_content(text, named)
    return indexed_protobuf_content(descriptor_set_of(_OWN_NAME, text, named))
