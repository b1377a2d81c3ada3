"""Returns the topics of AsyncAPI channels: names, and patterns for addresses with parameters."""

import json
import re
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Final

from sluicegate.config.contracts.asyncapi.messages import KAFKA
from sluicegate.config.contracts.asyncapi.nodes import DocumentNode, Refused
from sluicegate.config.contracts.asyncapi.references import References
from sluicegate.protocol.topic_name import LEGAL_CHARACTERS, is_legal_topic_name

_PROTOCOLS: Final = frozenset({"kafka", "kafka-secure"})
_PARAMETER = re.compile(r"\{([^{}]*)\}")
_ANY_PART = "[^.]+"
_MOST_NAMES = 100
_LONGEST = 249


def is_of_kafka(references: References, channel: DocumentNode, is_version_2: bool) -> bool:
    """Return whether a channel is a Kafka topic. Its servers determine this, or else its binding."""
    servers = servers_of(references, channel, is_version_2)
    if not servers:
        return _binding(references, channel) is not None
    return any(str(each.mapping().get("protocol", "")).lower() in _PROTOCOLS for each in servers)


def servers_of(references: References, channel: DocumentNode, is_version_2: bool) -> list[DocumentNode]:
    """Return the servers that a channel names, or else all servers. Raises Refused."""
    servers = dict(references.items(references.get(references.root, "servers")))
    given = references.get(channel, "servers")
    named = [] if given is None else given.list()
    unknown = next((each for each in named if is_version_2 and each.text() not in servers), None)
    if unknown is not None:
        raise Refused(unknown, "the document defines no such server")
    chosen = [servers[each.text()] if is_version_2 else references.resolved(each) for each in named]
    return chosen or list(servers.values())


def topics_of_channel(
    references: References, channel: DocumentNode, key: str, is_version_2: bool
) -> list[tuple[str, DocumentNode]]:
    """Return a channel's topics, each with the place that names it. There are none if the address is unknown.

    A topic is a name, or a regular expression between slashes if a parameter does not list its values. Raises Refused.
    """
    binding = _binding(references, channel)
    topic = None if binding is None else binding.get("topic")
    if topic is not None:
        where = topic
    elif is_version_2:
        where = DocumentNode(key, channel.source, channel.path)
    else:
        address = references.resolved(channel).get("address")
        if address is None:
            return []
        where = address
    return [(name, where) for name in _topics(references, channel, where)]


def _binding(references: References, channel: DocumentNode) -> DocumentNode | None:
    bindings = references.get(channel, "bindings")
    return None if bindings is None else references.get(bindings, KAFKA)


def _topics(references: References, channel: DocumentNode, where: DocumentNode) -> Iterator[str]:
    address = where.text()
    parts = _PARAMETER.split(address)
    parameters = dict(references.items(references.get(channel, "parameters")))
    values = [_values(references, parameters.get(name)) for name in parts[1::2]]
    literals = parts[::2]
    if len(address) > 10 * _LONGEST or not set("".join(literals)) <= set(LEGAL_CHARACTERS):
        words = "a topic name has at most 249 letters, digits, . _ -; set bindings.kafka.topic of the channel"
        raise Refused(where, f"{address[:300]} is not a valid topic name: {words}")
    for each in (value for of_one in values for value in of_one or ()):
        if not set(each) <= set(LEGAL_CHARACTERS):
            raise Refused(where, f"a parameter has the value {each[:100]}, which cannot be part of a topic name")
    if all(values) and prod(map(len, values)) <= _MOST_NAMES:
        for chosen in product(*values):
            name = "".join(f"{literal}{value}" for literal, value in zip(literals, (*chosen, ""), strict=True))
            if not is_legal_topic_name(name):
                raise Refused(where, f"{name[:300]} is not a valid topic name")
            yield name
        return
    written = ("(" + "|".join(map(re.escape, of_one)) + ")" if of_one else _ANY_PART for of_one in values)
    escaped = [re.escape(literal) for literal in literals]
    yield f"/{''.join(f'{literal}{part}' for literal, part in zip(escaped, (*written, ''), strict=True))}/"


def _values(references: References, parameter: DocumentNode | None) -> list[str]:
    """Return the values that a parameter may have. The list is empty if the document does not list them."""
    if parameter is None:
        return []
    schema = references.get(parameter, "schema") or parameter  # in version 2, a parameter has a schema
    const = schema.get("const")
    if const is not None:
        return [_text_of(const)]
    listed = schema.get("enum")
    return [] if listed is None else list(dict.fromkeys(map(_text_of, listed.list())))


def _text_of(value: DocumentNode) -> str:
    return value.value if isinstance(value.value, str) else json.dumps(value.value)
