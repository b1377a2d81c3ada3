"""Determines how the payload of an AsyncAPI message is validated."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluicegate.config.contracts.asyncapi.json_schemas import DRAFT_7, draft_of
from sluicegate.config.contracts.asyncapi.media_types import (
    ANY_BINARY,
    AVRO,
    JSON,
    PROTOBUF,
    MediaType,
    data_format_of,
    language_of,
    media_type_of,
)
from sluicegate.config.contracts.asyncapi.messages import ChannelMessage
from sluicegate.config.contracts.asyncapi.nodes import DocumentNode
from sluicegate.config.contracts.asyncapi.protobuf_messages import messages_in
from sluicegate.config.contracts.asyncapi.references import References

_SCHEMA_FORMAT: Final = "schemaFormat"
_SUBJECTS: Final = {
    **dict.fromkeys(("topicidstrategy", "topicnamestrategy"), "topic"),
    **dict.fromkeys(("recordidstrategy", "recordnamestrategy"), "record"),
    **dict.fromkeys(("topicrecordidstrategy", "topicrecordnamestrategy"), "topic-record"),
}
_AS_CONFLUENT: Final = frozenset({"confluent", "karapace"})


class NotRead(Exception):
    """Raised for a payload, header or key that nothing checks. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Payload:
    """How a payload is validated.

    `keys` are keys of a rule's `schema`. `schema` is a JSON Schema that the data, or the data converted to JSON, must
    match. It is None if `keys` contains the schema. `draft` is the JSON Schema's default draft. `ignored` is why the
    document's schema has no effect.
    """

    keys: Mapping[str, Any]
    schema: DocumentNode | None = None
    draft: str = DRAFT_7
    ignored: str | None = None


@dataclass(frozen=True, slots=True)
class RegistryUse:
    """How producers use a schema registry.

    `name` is the entry in `registries`, or None. `location` is where a schema's id is: `payload`, `header`, or None if
    the message does not specify it. In that case it is `payload` for Avro and Protobuf if a server `has_registry`.
    `encoding` is how the id is encoded in a payload.
    """

    name: str | None
    location: str | None
    has_registry: bool
    encoding: str
    subject: str | None

    def envelope(self, language: str) -> dict[str, str]:
        """Return the keys of `schema` for what precedes the data. Raises NotRead."""
        is_assumed = self.location is None and self.has_registry and language != JSON
        if self.location != "payload" and not is_assumed:
            return {}
        if self.encoding not in _AS_CONFLUENT:
            raise NotRead(f"schema ids encoded as {self.encoding[:100]} need registry in the item of contracts")
        return {"envelope": "confluent"}


def registry_use(
    references: References, message: ChannelMessage, name: str | None, servers: list[DocumentNode]
) -> RegistryUse:
    """Return how a message's producers use a registry, according to the bindings of the message and of its servers."""
    url, vendor = _of_servers(references, servers)
    location = _text_in(references, message, "schemaIdLocation")
    encoding = _text_in(references, message, "schemaIdPayloadEncoding") or vendor or "confluent"
    strategy = (_text_in(references, message, "schemaLookupStrategy") or "").rpartition(".")[2].lower()
    return RegistryUse(name, location, url is not None, encoding.lower(), _SUBJECTS.get(strategy))


def payload_of(references: References, message: ChannelMessage, use: RegistryUse, default_type: str | None) -> Payload:
    """Return how a message's payload is validated.

    `default_type` is the document's `defaultContentType`. Raises NotRead and Refused.
    """
    node, written = _schema_and_format(references, message)
    language = language_of(written)
    if language is None:
        raise NotRead(f"schemas in {written.name[:100]} are not supported")
    return _checked_payload(
        references, message, node, (language, written), _data_format(references, message, language, default_type), use
    )


def schema_keys(
    references: References, node: DocumentNode, language: str, use: RegistryUse, name: str
) -> dict[str, Any]:
    """Return the keys of a rule's `schema` for Avro or Protobuf. `name` is the message's name.

    Raises NotRead and Refused.
    """
    if use.name is not None:
        subject = {} if use.subject is None else {"subject": use.subject}
        return {"registry": use.name, "format": language, **subject}
    keys = use.envelope(language)
    if language == AVRO:
        return {"text": _avro_text(references, node), "format": AVRO, **keys}
    file = references.file_of(node)
    text = references.text_of(node, file) if file is not None else references.resolved(node).text()
    message = _message_name(text, name)
    source = {"text": text} if file is None else {"file": str(file.absolute())}
    return {**source, "format": PROTOBUF, "message": message, **keys}


def _checked_payload(
    references: References,
    message: ChannelMessage,
    node: DocumentNode,
    schema: tuple[str, MediaType],
    data: str,
    use: RegistryUse,
) -> Payload:
    language, written = schema
    if language == data != JSON:
        ignored = None if use.name is None else f"records follow the schemas of the registry {use.name}"
        return Payload(schema_keys(references, node, language, use, message.name), ignored=ignored)
    draft = draft_of(written.parameters) if written.name.startswith("application/schema") else DRAFT_7
    if language != JSON:
        raise NotRead(
            f"the schema is {language}, but contentType names another format: correct the message's contentType"
        )
    if draft is None:
        raise NotRead(f"JSON Schema of version {written.parameters['version'][:100]} is not known")
    if data == JSON:
        return Payload({"format": JSON, **use.envelope(JSON)}, node, draft)
    if use.name is None:
        raise NotRead(f"set registry in the item of contracts: that registry has the {data} schemas of the records")
    return Payload(schema_keys(references, node, data, use, message.name), node, draft)


def _schema_and_format(references: References, message: ChannelMessage) -> tuple[DocumentNode, MediaType]:
    """Return the payload's schema, which may be a reference, and its format. Raises NotRead."""
    given = message.first(references, _SCHEMA_FORMAT)
    written = None if given is None else given.text()
    payload = message.node.mapping().get("payload")
    if payload is None:
        raise NotRead("the message has no payload")
    node = message.node.at("payload")
    is_reference = references.file_of(node) is not None and written is not None
    value = None if is_reference else references.resolved(node)
    if value is not None and isinstance(value.value, dict) and _SCHEMA_FORMAT in value.value:  # version 3
        written = value.at(_SCHEMA_FORMAT).text()
        inner = value.get("schema")
        if inner is None:
            raise NotRead("the payload has a schemaFormat but no schema")
        node = inner
    return node, media_type_of(written or "application/vnd.aai.asyncapi")


def _data_format(references: References, message: ChannelMessage, language: str, default_type: str | None) -> str:
    own = message.first(references, "contentType")
    written = default_type if own is None else own.text()
    if written is None or (written.strip().lower() == ANY_BINARY and language != JSON):
        return language
    found = data_format_of(written)
    if found is None:
        raise NotRead(f"data of contentType {written[:100]} are not read")
    return found


def _avro_text(references: References, node: DocumentNode) -> str:
    file = references.file_of(node)
    if file is not None:
        return references.text_of(node, file)
    return json.dumps(references.resolved(node).value, ensure_ascii=False)


def _message_name(text: str, name: str) -> str:
    names = messages_in(text)
    if len(names) == 1:
        return names[0]
    same = [each for each in names if each.rpartition(".")[2] == name or each == name]
    if len(same) != 1:
        shown = ", ".join(names[:5]) or "none"
        raise NotRead(f"the Protobuf source has {len(names)} messages ({shown[:200]}); none is named {name[:100]}")
    return same[0]


def _of_servers(references: References, servers: list[DocumentNode]) -> tuple[str | None, str | None]:
    """Return the URL and the vendor of the registry that the servers' bindings name."""
    for server in servers:
        bindings = references.get(server, "bindings")
        kafka = None if bindings is None else references.get(bindings, "kafka")
        if kafka is not None and kafka.get("schemaRegistryUrl") is not None:
            url, vendor = kafka.mapping()["schemaRegistryUrl"], kafka.mapping().get("schemaRegistryVendor")
            return str(url), None if vendor is None else str(vendor)
    return None, None


def _text_in(references: References, message: ChannelMessage, key: str) -> str | None:
    found = message.of_kafka(references, key)
    return None if found is None else str(found.value)
