"""Asks a broker where partitions' logs start: ListOffsets, the earliest offset, version 1.

Version 1 is the first with one offset for each partition, and the last that all brokers know (Kafka 0.10.1 to 4.3); any
broker that takes Produce v5, whose answers tell log start offsets, has it. Written by hand: as many partitions may be
asked for as a Produce request names.
"""

from collections.abc import Iterable, Mapping
from struct import Struct
from struct import error as StructError

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, build_request_header

_VERSION = 1
_HEADER_VERSION = 1
_CLIENT_ID = "sluicegate"
_NO_REPLICA = -1
_EARLIEST = -2
_INT32 = Struct(">i")
_LENGTH = Struct(">h")
_ASKED = Struct(">iq")
_TOLD = Struct(">ihqq")


def question(partitions: Mapping[str, Iterable[int]], correlation_id: int) -> bytes:
    """A request (a frame without its size) for these partitions by topic."""
    parts = [
        build_request_header(ApiKey.LIST_OFFSETS, _VERSION, correlation_id, _CLIENT_ID, _HEADER_VERSION),
        _INT32.pack(_NO_REPLICA),
        _INT32.pack(len(partitions)),
    ]
    for topic, indexes in partitions.items():
        name = topic.encode()
        asked = [_ASKED.pack(index, _EARLIEST) for index in indexes]
        parts += (_LENGTH.pack(len(name)), name, _INT32.pack(len(asked)), *asked)
    return b"".join(parts)


def log_starts_in(frame: bytes | bytearray, asked: int) -> dict[tuple[str, int], int]:
    """(topic, partition) -> offset, of those that the answer tells without an error, where so many partitions were
    asked for. Raises MalformedMessage, for what tells of more too: hundreds of thousands keep others waiting.
    """
    told: dict[tuple[str, int], int] = {}
    position = CORRELATION_ID_BYTES
    try:
        (topics,) = _INT32.unpack_from(frame, position)
        position += _INT32.size
        _check(topics, asked)
        left = asked
        for _ in range(topics):
            (length,) = _LENGTH.unpack_from(frame, position)
            position += _LENGTH.size
            topic = bytes(frame[position : position + length]).decode()
            position += length
            (count,) = _INT32.unpack_from(frame, position)
            position += _INT32.size
            _check(count, left)
            left -= max(count, 0)
            for _ in range(count):
                index, code, _, offset = _TOLD.unpack_from(frame, position)
                position += _TOLD.size
                if code == 0:
                    told[topic, index] = offset
    except (StructError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"an answer to ListOffsets that is cut or no text: {error}") from error
    return told


def _check(told: int, most: int) -> None:
    if told > most:
        raise MalformedMessage(f"an answer to ListOffsets that tells of {told} where {most} are left of what was asked")
