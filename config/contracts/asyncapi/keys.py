"""Translates the keys of AsyncAPI messages (`bindings.kafka.key`) to rules for keys."""

import json
from collections.abc import Mapping
from typing import Any, Final

from sluicegate.config.contracts.asyncapi.headers import NoteAt
from sluicegate.config.contracts.asyncapi.json_schemas import DRAFT_7, SchemaWriter
from sluicegate.config.contracts.asyncapi.media_types import AVRO, JSON
from sluicegate.config.contracts.asyncapi.messages import ChannelMessage
from sluicegate.config.contracts.asyncapi.nodes import DocumentNode
from sluicegate.config.contracts.asyncapi.payloads import NotRead, RegistryUse, schema_keys
from sluicegate.config.contracts.asyncapi.references import References
from sluicegate.config.contracts.asyncapi.text_checks import condition_of, kind_of

KEY: Final = "key"
_AVRO_TYPES: Final = frozenset({"record", "enum", "fixed", "map", "bytes", "int", "long", "float", "double"})


def key_rule(
    references: References, message: ChannelMessage, use: RegistryUse, writer: SchemaWriter, note: NoteAt
) -> dict[str, Any] | None:
    """Return the keys of a rule for a message's key, or None if the document contains no schema for it.

    Raises NotRead and Refused.
    """
    node = _binding_key(references, message)
    if node is None:
        return None
    schema = references.resolved(node)
    values = schema.mapping()
    if str(values.get("type")) in _AVRO_TYPES:
        return {KEY: {"required": True, "schema": schema_keys(references, node, AVRO, use, message.name)}}
    required = {} if _allows_null(values) else {"required": True}
    kind = kind_of(values)
    if kind == "string":
        return _of_text(schema, required, message, note)
    if kind in ("object", "array"):
        text = json.dumps(
            writer.written(
                [schema], DRAFT_7, lambda at: note(at, "discriminator of a key", "it does not choose the schema")
            ),
            ensure_ascii=False,
        )
        return {KEY: {**required, "schema": {"text": text, "format": JSON}}}
    if required:
        note(schema, f"type of the key of message {message.name}", _why_not(kind))
        return {KEY: required}
    raise NotRead(_why_not(kind))


def _why_not(kind: str | None) -> str:
    return f"serializers write keys of the type {kind} in several ways" if kind else "the key has no single type"


def _of_text(
    schema: DocumentNode, required: Mapping[str, Any], message: ChannelMessage, note: NoteAt
) -> dict[str, Any]:
    condition = condition_of(
        schema.mapping(), KEY, lambda what, why: note(schema, f"{what} of the key of message {message.name}", why)
    )
    if condition is None:
        return {KEY: {**required, "utf8": True}}
    return {KEY: {**required, "utf8": True}, "cel": condition if required else f"{KEY} == null || ({condition})"}


def _allows_null(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    return "null" in kinds if isinstance(kinds, list) else kinds == "null"


def _binding_key(references: References, message: ChannelMessage) -> DocumentNode | None:
    """Return the key's schema, which may be a reference."""
    for bindings in message.all(references, "bindings"):
        kafka = references.get(bindings, "kafka")
        if kafka is not None and kafka.get(KEY) is not None:
            return kafka.at(KEY)
    return None
