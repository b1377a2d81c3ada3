"""Returns the rules that an AsyncAPI document defines for each of its Kafka topics."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from sluicegate.config.contracts.asyncapi.addresses import is_of_kafka, servers_of, topics_of_channel
from sluicegate.config.contracts.asyncapi.headers import common_checks, header_checks
from sluicegate.config.contracts.asyncapi.json_schemas import SchemaWriter
from sluicegate.config.contracts.asyncapi.keys import KEY, key_rule
from sluicegate.config.contracts.asyncapi.messages import (
    KAFKA,
    ChannelMessage,
    messages_of,
    operations_by_channel,
    operations_in,
)
from sluicegate.config.contracts.asyncapi.nodes import DocumentNode, Refused
from sluicegate.config.contracts.asyncapi.payloads import NotRead, Payload, payload_of, registry_use
from sluicegate.config.contracts.asyncapi.published_schemas import VERSION_KEY
from sluicegate.config.contracts.asyncapi.references import References
from sluicegate.config.files.source import printable
from sluicegate.config.values.contract import ContractRule, TopicContract, Unchecked

_INFO = "info"
_CONTACT = "contact"
_MOST_TOPICS = 1000
_MOST_CHARACTERS = 4 << 20
_OF_TOPICS: Final = {
    "partitions": "partitions are not visible in records",
    "replicas": "replicas are not visible in records",
    "topicConfiguration": "settings of topics are the broker's; write them in topics",
}
_OF_OPERATIONS: Final = {
    "groupId": "consumer groups are not visible in records",
    "clientId": "client ids are not compared",
}


def asyncapi_topics(references: References, file: FilePath, registry: str | None, mode: str) -> list[TopicContract]:
    """Return each topic in a document.

    Errors are reported in the `problems` of its source, and channels without a known address in its `remarks`.
    `registry` names the registry with the schemas of Avro and Protobuf records, or is None. `mode` is the mode of the
    rules.
    """
    source = references.root.source
    try:
        document = _Document(references, file, registry, mode)
        channels = references.items(references.get(references.root, "channels"))
    except Refused as error:
        source.problems.append(error.problem)
        return []
    found: list[TopicContract] = []
    for key, channel in channels:
        try:
            found += document.topics_of(key, channel)
        except Refused as error:
            if error.problem not in source.problems:  # several channels may use the same part
                source.problems.append(error.problem)
            if len(source.problems) > _MOST_TOPICS:
                break
    return found


class _Document:
    """The parts of a document that all channels share."""

    def __init__(self, references: References, file: FilePath, registry: str | None, mode: str) -> None:
        self.references = references
        self.file = file
        self.registry = registry
        self.mode = mode
        root = references.root
        self.is_version_2 = str(root.value.get(VERSION_KEY)).startswith("2.")
        default = root.get("defaultContentType")
        self.default_type = None if default is None else default.text()
        info = references.get(root, _INFO)
        version = None if info is None else info.get("version")
        self.version = "" if version is None else str(version.value)[:100]
        self.owner = None if info is None else _owner_in(references, info)
        self.writer = SchemaWriter(references)
        self.characters = 0
        self._topics = 0
        self._operations = {} if self.is_version_2 else operations_by_channel(references)

    def operations_of(self, channel: DocumentNode) -> list[DocumentNode]:
        """Return a channel's operations and their traits. Raises Refused."""
        if self.is_version_2:
            return operations_in(self.references, channel)
        return self._operations.get((id(channel.source), channel.path), [])

    def topics_of(self, key: str, channel: DocumentNode) -> Iterator[TopicContract]:
        """Yield a channel's topics; none if it is not a Kafka topic. Raises Refused."""
        if not is_of_kafka(self.references, channel, self.is_version_2):
            return
        topics = topics_of_channel(self.references, channel, key, self.is_version_2)
        if not topics:
            words = f"{channel.place}: channel {key} has no rule: its address is unknown; set bindings.kafka.topic"
            channel.source.remarks.append(printable(words))
            return
        self._topics += len(topics)
        if self._topics > _MOST_TOPICS:
            raise Refused(channel, f"the document has more than {_MOST_TOPICS} topics")
        rules, unchecked = _Channel(self, channel).statements()
        for topic, where in topics:
            yield TopicContract(
                topic,
                self.file,
                self.version,
                where.path,
                where.place,
                self.owner,
                self.registry if any(_uses_registry(rule.keys) for rule in rules) else None,
                rules,
                (),
                unchecked,
                owner_path=(_INFO, _CONTACT),
            )


class _Channel:
    """A collector of one channel's rules, and of its statements without effect."""

    def __init__(self, document: _Document, channel: DocumentNode) -> None:
        self._document = document
        self._references = document.references
        self._channel = channel
        self._rules: list[ContractRule] = []
        self._unchecked: dict[Unchecked, None] = {}

    def statements(self) -> tuple[tuple[ContractRule, ...], tuple[Unchecked, ...]]:
        """Return the rules, and the statements that nothing checks. Raises Refused."""
        messages = messages_of(self._references, self._channel, self._document.is_version_2)
        if messages:
            self._add_payload(messages)
            self._add_headers(messages)
            self._add_key(messages)
        else:
            self._note(self._channel, f"channel {self._channel.path[-1]}", "it has no messages")
        for message in messages:
            self._note_correlation(message)
        self._note_bindings()
        return tuple(self._rules), tuple(self._unchecked)

    def _add_payload(self, messages: list[ChannelMessage]) -> None:
        payloads: list[Payload] = []
        for message in messages:
            try:
                payloads.append(payload_of(self._references, message, self._use(message), self._document.default_type))
            except NotRead as reason:
                self._note(message.node, f"payload of message {message.name}", str(reason))
        if len(payloads) < len(messages):
            for message in messages if payloads else ():
                why = "another message of the channel is not checked, and a record does not show which message it is"
                self._note(message.node, f"payload of message {message.name}", why)
            return
        first = payloads[0]
        if any(_kind_of(each) != _kind_of(first) for each in payloads):
            for message in messages:
                why = (
                    "the messages of the channel have several formats or schemas; set registry, or use one channel for "
                    "each message"
                )
                self._note(message.node, f"payload of message {message.name}", why)
            return
        schemas = [each.schema for each in payloads if each.schema is not None]
        keys = dict(first.keys)
        if schemas:
            written = json.dumps(
                self._document.writer.written(schemas, first.draft, self._note_discriminator), ensure_ascii=False
            )
            keys = {"json_schema" if "registry" in keys else "text": written, **keys}
        if len(messages) > 1:
            self._note_several(messages, bool(schemas))
        if first.ignored is not None:
            for message in messages:
                self._note(message.node, f"schema of message {message.name}", first.ignored)
        self._add("payload", {"value": {"schema": keys}}, messages[0].node)

    def _note_several(self, messages: list[ChannelMessage], is_compared: bool) -> None:
        words = f"a record follows exactly one of {len(messages)} messages"
        why = "a record may follow several" if is_compared else "the registry's schema of the record is compared"
        self._note(self._channel, words, why)

    def _add_headers(self, messages: list[ChannelMessage]) -> None:
        each = [header_checks(self._references, message, self._note) for message in messages]
        checks = common_checks(each)
        why = "the messages of the channel differ here"
        for message, own in zip(messages, each, strict=True):
            beyond = sorted(own.required - checks.required)
            beyond += sorted(name for name, each in own.patterns.items() if each != checks.patterns.get(name, []))
            for name in dict.fromkeys(beyond):
                self._note(message.node, f"header {name} of message {message.name}", why)
        for section in checks.rules():
            self._add("headers", {"headers": section}, messages[0].node)

    def _add_key(self, messages: list[ChannelMessage]) -> None:
        rules: list[dict[str, Any] | None] = []
        for message in messages:
            try:
                use = self._use(message)
                rules.append(key_rule(self._references, message, use, self._document.writer, self._note))
            except NotRead as reason:
                self._note(message.node, f"{KEY} of message {message.name}", str(reason))
                rules.append(None)
        first = rules[0]
        if first is not None and all(rule == first for rule in rules):
            self._add(KEY, first, messages[0].node)
            return
        for message, rule in zip(messages, rules, strict=True):
            if rule is not None:
                why = "the messages of the channel differ here"
                self._note(message.node, f"{KEY} of message {message.name}", why)

    def _use(self, message: ChannelMessage) -> Any:
        servers = servers_of(self._references, self._channel, self._document.is_version_2)
        return registry_use(self._references, message, self._document.registry, servers)

    def _add(self, name: str, keys: dict[str, Any], node: DocumentNode) -> None:
        document = self._document
        document.characters += len(json.dumps(keys))
        if document.characters > _MOST_CHARACTERS:
            raise Refused(node, f"the rules of the document have more than {_MOST_CHARACTERS >> 20} MiB")
        same = sum(1 for rule in self._rules if rule.keys["name"].split("-")[0] == f"contract.{name}")
        full = f"contract.{name}" if same == 0 else f"contract.{name}-{same + 1}"
        mode = {} if document.mode == "reject" else {"mode": document.mode}
        self._rules.append(ContractRule({"name": full, **mode, **keys}, node.path, node.place))

    def _note_discriminator(self, node: DocumentNode) -> None:
        self._note(node, f"discriminator {str(node.value)[:100]}", "it does not choose the schema; write const or enum")

    def _note_correlation(self, message: ChannelMessage) -> None:
        found = message.first(self._references, "correlationId")
        if found is not None:
            self._note(found, f"correlationId of message {message.name}", "records are not compared with each other")

    def _note_bindings(self) -> None:
        binding = self._references.get(self._channel, "bindings")
        kafka = None if binding is None else self._references.get(binding, KAFKA)
        for key, why in _OF_TOPICS.items():
            found = None if kafka is None else kafka.get(key)
            if found is not None:
                self._note(found, f"{key} of channel {self._channel.path[-1]}", why)
        for operation in self._document.operations_of(self._channel):
            self._note_operation(operation)

    def _note_operation(self, operation: DocumentNode) -> None:
        binding = self._references.get(operation, "bindings")
        kafka = None if binding is None else self._references.get(binding, KAFKA)
        for key, why in _OF_OPERATIONS.items():
            found = None if kafka is None else kafka.get(key)
            if found is not None:
                self._note(found, f"{key} of an operation", why)
        reply = operation.get("reply")
        if reply is not None:
            self._note(reply, "reply of an operation", "requests and replies are not compared")

    def _note(self, node: DocumentNode, what: str, why: str) -> None:
        self._unchecked[Unchecked(what, why, node.place)] = None


def _kind_of(payload: Payload) -> tuple[object, ...]:
    """Return what a channel's messages must have in common to be checked by a single rule."""
    return payload.keys, payload.schema is None, payload.draft


def _uses_registry(rule: Mapping[str, Any]) -> bool:
    return any("registry" in rule.get(part, {}).get("schema", {}) for part in ("value", KEY))


def _owner_in(references: References, info: DocumentNode) -> dict[str, str] | None:
    """Return the contact as an owner, or None if it has no name."""
    contact = references.get(info, _CONTACT)
    name = None if contact is None else contact.mapping().get("name")
    if contact is None or not name:
        return None
    address = contact.value.get("url") or contact.value.get("email")
    return {"team": str(name)} | ({"contact": str(address)} if address else {})
