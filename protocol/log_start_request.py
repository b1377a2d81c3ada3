"""Requests partitions' log start offsets from a broker, with ListOffsets version 1 for the earliest offset.

Version 1 is the first version with one offset per partition, and the last that all brokers support (Kafka 0.10.1 to
4.3). Every broker that accepts Produce v5, whose responses contain log start offsets, supports it. The code does not
use construct, because a request may have as many partitions as a Produce request.
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
_REQUESTED = Struct(">iq")
_RETURNED = Struct(">ihqq")


def log_start_request(partitions: Mapping[str, Iterable[int]], correlation_id: int) -> bytes:
    """Return a request (a frame without its size) for these partitions by topic."""
    parts = [
        build_request_header(ApiKey.LIST_OFFSETS, _VERSION, correlation_id, _CLIENT_ID, _HEADER_VERSION),
        _INT32.pack(_NO_REPLICA),
        _INT32.pack(len(partitions)),
    ]
    for topic, indexes in partitions.items():
        name = topic.encode()
        requested = [_REQUESTED.pack(index, _EARLIEST) for index in indexes]
        parts += (_LENGTH.pack(len(name)), name, _INT32.pack(len(requested)), *requested)
    return b"".join(parts)


def log_starts_in(frame: bytes | bytearray, requested: int) -> dict[tuple[str, int], int]:
    """Return the offset of each (topic, partition) for which the response reports no error.

    Raises MalformedMessage, also if the response has more than `requested` partitions, because reading hundreds of
    thousands would block the event loop.
    """
    found: dict[tuple[str, int], int] = {}
    position = CORRELATION_ID_BYTES
    try:
        (topics,) = _INT32.unpack_from(frame, position)
        position += _INT32.size
        _check(topics, requested)
        left = requested
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
                index, code, _, offset = _RETURNED.unpack_from(frame, position)
                position += _RETURNED.size
                if code == 0:
                    found[topic, index] = offset
    except (StructError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"ListOffsets response v{_VERSION}: it is cut or not UTF-8: {error}") from error
    return found


def _check(count: int, most: int) -> None:
    if count > most:
        raise MalformedMessage(
            f"ListOffsets response v{_VERSION}: {count} entries, where at most {most} were requested"
        )
