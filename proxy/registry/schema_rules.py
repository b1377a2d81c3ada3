"""From what the file says of a schema to the rule that holds records to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sluicegate.config.regular_file import read_file
from sluicegate.config.value_rules import Schema
from sluicegate.proxy.registry.protoc import descriptor_set_of_file
from sluicegate.validation.rules.avro_schema import avro_content
from sluicegate.validation.rules.content import Content, SchemaUnusable
from sluicegate.validation.rules.json_schema import json_schema_content
from sluicegate.validation.rules.protobuf_schema import protobuf_content
from sluicegate.validation.rules.registered_schema import HasRegisteredSchema, Schemas, SubjectName
from sluicegate.validation.rules.rule import Rule
from sluicegate.validation.rules.schema_file import Envelope, FollowsSchema
from sluicegate.validation.rules.schema_language import SchemaLanguage
from sluicegate.validation.rules.side import Side

_MOST_BYTES = 10 << 20
_LANGUAGES: Final = {
    "json": SchemaLanguage.JSON,
    "avro": SchemaLanguage.AVRO,
    "protobuf": SchemaLanguage.PROTOBUF,
    None: None,
}


class SchemaRules:
    """Makes rules of what one file says of schemas; each schema is read once. `registries`: by the file's names."""

    def __init__(self, registries: Mapping[str, Schemas]) -> None:
        self._registries = registries
        self._contents: dict[Schema, Content] = {}

    def __call__(self, schema: Schema, side: Side) -> Rule:
        """Raises SchemaUnusable."""
        if schema.registry is not None:
            schemas = self._registries[schema.registry]
            return HasRegisteredSchema(side, schemas, _LANGUAGES[schema.format], SubjectName(schema.subject or "topic"))
        content = self._contents.get(schema)
        if content is None:
            content = self._contents[schema] = content_of_file(schema)
        return FollowsSchema(side, content, Envelope(schema.envelope or "none"))


def content_of_file(schema: Schema) -> Content:
    """A schema from a file, compiled; Protobuf's as .proto or as a descriptor set. Raises SchemaUnusable."""
    assert schema.file is not None
    path = Path(schema.file)
    content = _read(path)
    if schema.format == "protobuf":
        descriptor_set = descriptor_set_of_file(path) if path.suffix == ".proto" else content
        return protobuf_content(descriptor_set, schema.message or "")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise SchemaUnusable(f"{path} is not UTF-8") from None
    return avro_content(text) if schema.format == "avro" else json_schema_content(text)


def _read(path: Path) -> bytes:
    try:
        content = read_file(path, _MOST_BYTES)
    except OSError as error:
        raise SchemaUnusable(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise SchemaUnusable(f"{path} has more than {_MOST_BYTES} bytes, and is no schema")
    return content
