"""Parses responses to the proxy's own requests. Like Kafka's clients, it ignores bytes after the end."""

from dataclasses import dataclass, field

import structlog

from sluicegate.config.values.address import HostPort
from sluicegate.protocol.messages.schema import DEFAULT_MAX_ELEMENTS, MessageSchema, Value

_reported: set[tuple[HostPort, str, int]] = set()


@dataclass(frozen=True, slots=True)
class BrokerResponse:
    """A response's body, and the address of the broker that sent it."""

    broker: HostPort
    body: bytes = field(repr=False)


def read_response(
    schema: MessageSchema, response: BrokerResponse, version: int, max_elements: int = DEFAULT_MAX_ELEMENTS
) -> Value:
    """Parse a response. Raises MalformedMessage, which names the API and version.

    Bytes after the end are logged once per process for each broker, API and version.
    """
    value, end = schema.parse_start(response.body, version, max_elements)
    key = (response.broker, schema.name, version)
    if end < len(response.body) and key not in _reported:
        _reported.add(key)
        structlog.get_logger("sluicegate.cluster").warning(
            "bytes after a broker's response ignored",
            broker=str(response.broker),
            response=schema.name,
            version=version,
            bytes=len(response.body) - end,
        )
    return value
