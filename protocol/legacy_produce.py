"""Converts Produce requests of versions 0 to 2 to version 3, and responses of version 3 to the older versions.

Version 3 adds a transactional id to the request, and allows exactly one batch of magic 2 per partition. Its response is
the same as that of version 2. Version 1 has no append time, and version 0 no throttle time.
"""

from collections.abc import Mapping, Set
from struct import Struct

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.headers import parse_request_header
from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from sluicegate.protocol.produce_response import produce_body_at, walk_produce_response
from sluicegate.protocol.produce_versions import APPEND_TIME_SINCE, ONE_BATCH_SINCE, THROTTLE_SINCE

_VERSION = ONE_BATCH_SINCE
_VERSION_AT = 2
_HEADER_VERSION = 1
_INT16 = Struct(">h")
_NO_TRANSACTION = _INT16.pack(-1)
_INDEX_BYTES = 4
_CODE_AND_OFFSET = Struct(">hq")
_SUCCESS = _CODE_AND_OFFSET.pack(ErrorCode.NONE, -1)
_APPEND_TIME_BYTES = 8
_THROTTLE_BYTES = 4


def with_batches(request: ProduceRequest, batches: Mapping[tuple[int, int], bytes]) -> ProduceRequest:
    """Return a request of version 3 that contains these batches.

    There is one for each (topic position, partition position) in the older request.
    """
    body_at = parse_request_header(request.frame, _HEADER_VERSION).body_at
    frame = bytearray(b"".join(request.with_records(batches)))
    frame[body_at:body_at] = _NO_TRANSACTION
    _INT16.pack_into(frame, _VERSION_AT, _VERSION)
    partitions = sum(1 + len(topic.partitions) for topic in request.topics)
    return walk_produce_request(frame, _VERSION, body_at, partitions)


def with_successes(frame: bytearray, empty: Set[tuple[str, int]], most_entries: int) -> bytearray:
    """Report success for the `empty` partitions in a broker's response of version 3, if their batch was corrupt.

    A broker up to 3.9 stores nothing of an empty set and reports success without an offset. Modifies the frame. Raises
    MalformedMessage.
    """
    response = walk_produce_response(frame, _VERSION, produce_body_at(frame, _VERSION), most_entries)
    for entry in response.entries:
        if entry.code == ErrorCode.CORRUPT_MESSAGE and (entry.topic, entry.index) in empty:
            at = entry.start + _INDEX_BYTES
            frame[at : at + len(_SUCCESS)] = _SUCCESS
    return frame


def in_older_version(frame: bytes | bytearray, version: int, most_entries: int) -> bytes | bytearray:
    """Return a response of version 3 (a frame without its size) in an older version. Raises MalformedMessage."""
    if version >= APPEND_TIME_SINCE:
        return frame
    response = walk_produce_response(frame, _VERSION, produce_body_at(frame, _VERSION), most_entries)
    older = bytearray()
    copied_to = 0
    for entry in response.entries:
        older += frame[copied_to : entry.end - _APPEND_TIME_BYTES]
        copied_to = entry.end
    end = len(frame) - (0 if version >= THROTTLE_SINCE else _THROTTLE_BYTES)
    return older + frame[copied_to:end]
