"""Finds an AsyncAPI channel's messages, with their traits applied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sluicegate.config.contracts.asyncapi.nodes import DocumentNode, Refused
from sluicegate.config.contracts.asyncapi.references import References
from sluicegate.config.files.source import Path

KAFKA = "kafka"
_MOST_MESSAGES = 100
_MOST_TRAITS = 50
_OPERATIONS: Final = ("publish", "subscribe")


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """A message.

    `layers` are the message and its traits. The first layer that contains a key determines its value.
    """

    name: str
    node: DocumentNode
    layers: tuple[DocumentNode, ...]

    def first(self, references: References, key: str) -> DocumentNode | None:
        """Return a key's value, with references resolved. Raises Refused."""
        return next(self.all(references, key), None)

    def all(self, references: References, key: str) -> Iterator[DocumentNode]:
        """Yield a key's value in each layer, with references resolved. Raises Refused."""
        found = (references.get(layer, key) for layer in self.layers)
        yield from (node for node in found if node is not None)

    def of_kafka(self, references: References, key: str) -> DocumentNode | None:
        """Return the value of a key in the message's Kafka binding, with references resolved. Raises Refused."""
        for bindings in self.all(references, "bindings"):
            kafka = references.get(bindings, KAFKA)
            if kafka is not None and kafka.get(key) is not None:
                return references.get(kafka, key)
        return None


def messages_of(references: References, channel: DocumentNode, is_version_2: bool) -> list[ChannelMessage]:
    """Return each of a channel's messages once. Raises Refused."""
    found: dict[tuple[int, Path], ChannelMessage] = {}
    named = _of_operations(references, channel) if is_version_2 else references.items(channel.get("messages"))
    for name, node in named:
        found.setdefault((id(node.source), node.path), _message(references, name, node, is_version_2))
        if len(found) > _MOST_MESSAGES:
            raise Refused(channel, f"the channel has more than {_MOST_MESSAGES} messages")
    return list(found.values())


def operations_by_channel(references: References) -> dict[tuple[int, Path], list[DocumentNode]]:
    """Return version 3's operations and their traits, by the source and path of their channel.

    Raises Refused.
    """
    found: dict[tuple[int, Path], list[DocumentNode]] = {}
    for _, operation in references.items(references.get(references.root, "operations")):
        channel = references.get(operation, "channel")
        if channel is not None:
            layers = [operation, *_traits(references, operation)]
            found.setdefault((id(channel.source), channel.path), []).extend(layers)
    return found


def operations_in(references: References, channel: DocumentNode) -> list[DocumentNode]:
    """Return the operations of a version 2 channel, and their traits. Raises Refused."""
    named = (references.get(channel, name) for name in _OPERATIONS)
    operations = [operation for operation in named if operation is not None]
    return [layer for each in operations for layer in (each, *_traits(references, each))]


def _of_operations(references: References, channel: DocumentNode) -> Iterator[tuple[str, DocumentNode]]:
    """Yield the messages of version 2's operations `publish` and `subscribe`."""
    for operation in _OPERATIONS:
        given = references.get(channel, operation)
        message = None if given is None else references.get(given, "message")
        if message is None:
            continue
        several = message.get("oneOf")
        nodes: Sequence[DocumentNode] = [message] if several is None else several.list()
        for i, node in enumerate(nodes):
            yield f"{operation}.{i + 1}" if len(nodes) > 1 else operation, references.resolved(node)


def _message(references: References, name: str, node: DocumentNode, is_version_2: bool) -> ChannelMessage:
    """Apply a message's traits. In version 2, the last trait takes precedence; in version 3, the message itself."""
    traits = _traits(references, node)
    layers = (*traits, node) if is_version_2 else (node, *traits)
    own = next((layer.value["name"] for layer in layers if isinstance(layer.mapping().get("name"), str)), None)
    last = node.path[-1] if node.path else name
    return ChannelMessage(own or (last if isinstance(last, str) and last != "message" else name), node, layers)


def _traits(references: References, node: DocumentNode) -> list[DocumentNode]:
    """Return the traits of a message or an operation, last one first. Raises Refused."""
    listed = references.get(node, "traits")
    if listed is None:
        return []
    if len(listed.list()) > _MOST_TRAITS:
        raise Refused(node, f"there are more than {_MOST_TRAITS} traits")
    return [references.resolved(trait) for trait in reversed(listed.list())]
