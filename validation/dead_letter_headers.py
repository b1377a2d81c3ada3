"""The headers that the proxy adds to a record in a dead-letter topic.

One of them keeps the record's own headers if librdkafka cannot write their names.
"""

from collections.abc import Sequence
from enum import StrEnum

from sluicegate.protocol.integers import signed_varint
from sluicegate.protocol.records.columns import read_headers

Headers = Sequence[tuple[bytes, bytes | None]]


class DeadLetterHeader(StrEnum):
    """The names, in the order of the headers. Unknown facts about a client have no header.

    `OWN`: all headers of the record itself; present only if librdkafka cannot write the name of one of them.
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
    """Return headers as librdkafka writes them: names are C strings in UTF-8, other bytes are escaped."""
    return [(name.decode(errors="backslashreplace").replace("\0", "\\x00"), value) for name, value in headers]


def packed(headers: Headers) -> bytes:
    """Return the value of `OWN`: the headers in the format of a record (KIP-98), starting with their count."""
    parts = [signed_varint(len(headers))]
    for name, value in headers:
        parts += (signed_varint(len(name)), name)
        parts += (signed_varint(-1),) if value is None else (signed_varint(len(value)), value)
    return b"".join(parts)


def unpacked(data: bytes) -> list[tuple[bytes, bytes | None]] | None:
    """Return the headers from the result of `packed`; None for other bytes."""
    return read_headers(memoryview(data), 0, len(data))
