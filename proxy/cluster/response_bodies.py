"""Parses responses to the proxy's own requests. Bytes after the end are ignored, as Kafka's clients do."""

import structlog

from sluicegate.protocol.messages.schema import DEFAULT_MAX_ELEMENTS, MessageSchema, Value

_reported: set[tuple[str, int]] = set()


def read_response(
    schema: MessageSchema, response: bytes, version: int, max_elements: int = DEFAULT_MAX_ELEMENTS
) -> Value:
    """Parse a response. Raises MalformedMessage, which names the API and version.

    Bytes after its end are logged once in a process for each API and version.
    """
    value, end = schema.parse_start(response, version, max_elements)
    if end < len(response) and (schema.name, version) not in _reported:
        _reported.add((schema.name, version))
        structlog.get_logger("sluicegate.cluster").warning(
            "bytes after a broker's response ignored", response=schema.name, version=version, bytes=len(response) - end
        )
    return value
