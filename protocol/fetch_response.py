"""Walks a Fetch response, version 12, by hand, and finds a partition's records without copying them.

    throttle_time int32 | error_code int16 | session_id int32 | count + 1 | { topic | count + 1 | { partition } | tags }
    partition: index int32 | error_code int16 | high_watermark int64 | last_stable_offset int64 | log_start int64 |
        count + 1 | { producer_id int64 | first_offset int64 | tags } | preferred_read_replica int32 | records | tags

A reader fetches one partition at a time, so a response contains only one. A test compares the result with the construct
schema.
"""

from dataclasses import dataclass
from struct import Struct, error

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import skip_tagged_fields
from sluicegate.protocol.integers import read_unsigned_varint

VERSION = 12
_HEAD = Struct(">ihi")
_PARTITION = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_INT32 = Struct(">i")


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """A partition in the response. `records` may be empty. `aborted` contains pairs of producer id and first offset."""

    error_code: int
    high_watermark: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]
    records: memoryview


def fetched_partition(body: memoryview) -> tuple[int, FetchedPartition | None]:
    """Return the response's error code and its only partition, or None if it has no partition.

    Raises MalformedMessage.
    """
    try:
        return _walk(body)
    except (error, IndexError) as cut:
        raise MalformedMessage(f"a Fetch response of version {VERSION} ends too early") from cut


def _walk(body: memoryview) -> tuple[int, FetchedPartition | None]:
    _, code, _ = _HEAD.unpack_from(body, 0)
    topics, position = read_unsigned_varint(body, _HEAD.size)
    if topics < 2:
        return code, None
    name_length, position = read_unsigned_varint(body, position)
    partitions, position = read_unsigned_varint(body, position + name_length - 1)
    if partitions < 2:
        return code, None
    _, partition_code, high_watermark, _, log_start = _PARTITION.unpack_from(body, position)
    count, position = read_unsigned_varint(body, position + _PARTITION.size)
    aborted = []
    for _ in range(count - 1):
        aborted.append(_ABORTED.unpack_from(body, position))
        position = skip_tagged_fields(body, position + _ABORTED.size)
    length, position = read_unsigned_varint(body, position + _INT32.size)
    end = position + max(length - 1, 0)
    if end > len(body):
        raise MalformedMessage("the records of a Fetch response run over its end")
    return code, FetchedPartition(partition_code, high_watermark, log_start, tuple(aborted), body[position:end])
