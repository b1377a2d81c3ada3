"""Creates requests with stand-ins: invalid batches in place of the batches that the proxy has rejected."""

from collections.abc import Mapping
from struct import Struct

from sluicegate.protocol.headers import parse_request_header
from sluicegate.protocol.integers import read_unsigned_varint
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE, ONE_BATCH_SINCE
from sluicegate.protocol.records.record_batch import (
    HEADER_UP_TO_MAGIC_BYTES,
    MAGIC_2,
    CorruptBatch,
    magic_at,
    next_batch_end,
)
from sluicegate.protocol.records.stand_in import stand_in
from sluicegate.validation.validated_request import Place
from sluicegate.validation.verdict import FaultStage

_INT16 = Struct(">h")
_ACKS_LEADER = _INT16.pack(1)
_NOTHING = memoryview(b"")


def rule_breaking_stand_in(records: memoryview, stage: FaultStage) -> bytes:
    """Return a stand-in that breaks the same rule as `records` at `stage`.

    The stand-in is a first batch with an invalid head, two batches instead of one, or no batch.
    """
    try:
        end = next_batch_end(records, 0)
    except CorruptBatch:
        return bytes(records[:HEADER_UP_TO_MAGIC_BYTES])
    if stage is FaultStage.REQUEST:
        return stand_in(records)
    if end is None or magic_at(records, 0) != MAGIC_2:
        return b""
    return stand_in(records) + _second_stand_in(records, end)


def _second_stand_in(records: memoryview, start: int) -> bytes:
    """Return a stand-in for the batch at `start`. If the batch's head is invalid, the stand-in keeps it."""
    try:
        next_batch_end(records, start)
    except CorruptBatch:
        return bytes(records[start : start + HEADER_UP_TO_MAGIC_BYTES])
    return stand_in(records)


def probe_request(request: ProduceRequest, stand_ins: Mapping[Place, bytes]) -> list[bytes | memoryview]:
    """Return the parts of a request that tests whether the broker itself would reject a partition.

    A stand-in replaces every batch, even a valid one, so that the broker stores nothing. The broker reports an unknown
    topic, a missing permission or a different leader. If it rejects only the stand-in, it would have validated the
    records next. `stand_ins` contains the stand-ins for rejected batches. A probe for a request with acks=0 has acks=1,
    so that the broker responds.
    """
    places = ((t, p) for t, topic in enumerate(request.topics) for p in range(len(topic.partitions)))
    parts = request.with_records(
        {place: stand_ins.get(place) or stand_in(request.records(*place) or _NOTHING) for place in places}
    )
    if request.acks != 0:
        return parts
    at = _acks_at(request)
    first = parts[0]
    return [bytes(first[:at]) + _ACKS_LEADER + bytes(first[at + _INT16.size :]), *parts[1:]]


def _acks_at(request: ProduceRequest) -> int:
    """Return the position of the acks field, which follows the header and, since version 3, the transactional id."""
    frame, version = request.frame, request.version
    at = parse_request_header(frame, 2 if version >= FLEXIBLE_SINCE else 1).body_at
    if version >= FLEXIBLE_SINCE:
        size, at = read_unsigned_varint(frame, at)
        return at + max(size - 1, 0)
    if version >= ONE_BATCH_SINCE:
        length: int = _INT16.unpack_from(frame, at)[0]
        return at + _INT16.size + max(length, 0)
    return at
