"""The headers that a record in a dead-letter topic has behind its own: their names, and how one of them keeps those of
its own that librdkafka does not write.
"""

from collections.abc import Sequence
from enum import StrEnum

from sluicegate.protocol.integers import signed_varint
from sluicegate.protocol.records.columns import read_headers

Headers = Sequence[tuple[bytes, bytes | None]]


class DeadLetterHeader(StrEnum):
    """In the order in which they stand. `OWN` is there only where the name of a header of the record's own is none that
    librdkafka can write: all of them as they stood in the record. What is not known of a client has none.
    """

    OWN = "sluicegate.headers"
    REASON = "sluicegate.reason"
    TOPIC = "sluicegate.topic"
    PARTITION = "sluicegate.partition"
    INDEX = "sluicegate.index"
    TIMESTAMP = "sluicegate.timestamp"
    RULE = "sluicegate.rule"
    CLIENT_ID = "sluicegate.client.id"
    SOFTWARE = "sluicegate.software"
    PRINCIPAL = "sluicegate.principal"
    ADDRESS = "sluicegate.address"
    VERSION = "sluicegate.version"


def shown(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return headers as librdkafka writes them, with names that are C strings of UTF-8: other bytes are escaped."""
    return [(name.decode(errors="backslashreplace").replace("\0", "\\x00"), value) for name, value in headers]


def packed(headers: Headers) -> bytes:
    """Return the value of `OWN`: headers as a record has them (KIP-98), from their count on."""
    parts = [signed_varint(len(headers))]
    for name, value in headers:
        parts += (signed_varint(len(name)), name)
        parts += (signed_varint(-1),) if value is None else (signed_varint(len(value)), value)
    return b"".join(parts)


def unpacked(data: bytes) -> list[tuple[bytes, bytes | None]] | None:
    """Return the headers that were `packed`; None where they were not."""
    return read_headers(memoryview(data), 0, len(data))
