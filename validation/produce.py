"""Judges a whole Produce request: what concerns all of it first, then partition by partition, as a broker does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from protocol.errors import ErrorCode
from protocol.produce_request import ProduceRequest
from protocol.records.codec import Codec
from protocol.records.record_batch import (
    HEADER_BYTES,
    CorruptBatch,
    attributes_low_byte,
    magic_at,
    next_batch_end,
    read_record_batch,
)
from validation import wording
from validation.judge import Submission, judge_partition
from validation.policy import JudgementLimits, TopicPolicy
from validation.verdict import Accepted, Reason, Refused, Verdict

Place = tuple[int, int]
"""A partition's place in a request: (topic position, partition position)."""

_VALID_ACKS = frozenset({-1, 0, 1})
_CODEC_MASK = 0x07
_TRANSACTIONAL = 0x10
_MAGIC_2 = 2
_ZSTD_SINCE = 7


@dataclass(slots=True)
class JudgedRequest:
    """The verdicts on one request. `accepted` and `refused` together hold every partition that was judged.

    `refused_at_ms`: the time that a refused partition was judged at, which its bounds are counted from.
    """

    accepted: dict[Place, Accepted] = field(default_factory=dict)
    refused: dict[Place, Refused] = field(default_factory=dict)
    refused_at_ms: dict[Place, int] = field(default_factory=dict)


def judge_request(
    request: ProduceRequest,
    names: Mapping[bytes, str],
    policy_of: Callable[[str], TopicPolicy],
    limits: JudgementLimits,
    now_ms: Callable[[], int],
) -> JudgedRequest:
    """Judge every partition. `names` resolves topic ids; `now_ms` is read once a partition.

    A request whose acks no broker takes is left to the broker: nothing of it is judged or stored.
    """
    judged = JudgedRequest()
    whole = _whole_request(request)
    if whole is None and request.acks not in _VALID_ACKS:
        return judged
    for t, topic in enumerate(request.topics):
        name = topic.name if topic.name is not None else names.get(topic.topic_id or b"")
        for p, partition in enumerate(topic.partitions):
            verdict: Verdict
            now = now_ms()
            if whole is not None:
                verdict = whole
            elif name is None:
                verdict = Refused(ErrorCode.UNKNOWN_TOPIC_ID, Reason.UNKNOWN_TOPIC_ID)
            else:
                submission = Submission(name, partition.index, _records(request, t, p), request.version)
                verdict = judge_partition(submission, policy_of(name), limits, now)
            if isinstance(verdict, Refused):
                judged.refused[t, p] = verdict
                judged.refused_at_ms[t, p] = now
            else:
                judged.accepted[t, p] = verdict
    return judged


def _records(request: ProduceRequest, t: int, p: int) -> memoryview | None:
    partition = request.topics[t].partitions[p]
    if partition.records_at < 0:
        return None
    return memoryview(request.frame)[partition.records_at : partition.records_end]


def _whole_request(request: ProduceRequest) -> Refused | None:
    """What makes a broker refuse everything in a request because of one partition, in its order."""
    batches = [
        records
        for t, topic in enumerate(request.topics)
        for p in range(len(topic.partitions))
        if (records := _records(request, t, p)) is not None
    ]
    try:
        transactional = any(_is_transactional(records) for records in batches)
    except CorruptBatch as error:
        return Refused(ErrorCode.CORRUPT_MESSAGE, Reason.MAGIC, str(error))
    if transactional and request.transactional_id is None:
        return Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Reason.TRANSACTIONAL_ID)
    if request.version < _ZSTD_SINCE and any(map(_has_unknown_codec, batches)):
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.CODEC)
    if transactional and len({producer for records in batches for producer in _producers(records)}) > 1:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING, Reason.PRODUCER_IDS, wording.MORE_THAN_ONE_PRODUCER)
    return None


def _is_transactional(records: memoryview) -> bool:
    """Of the first batch, whatever else is wrong with it. Raises CorruptBatch."""
    end = next_batch_end(records, 0)
    is_v2 = end is not None and magic_at(records, 0) == _MAGIC_2
    return is_v2 and bool(attributes_low_byte(records, 0) & _TRANSACTIONAL)


def _has_unknown_codec(records: memoryview) -> bool:
    end = _first_v2_batch_end(records)
    return end is not None and attributes_low_byte(records, 0) & _CODEC_MASK > Codec.ZSTD


def _producers(records: memoryview) -> list[tuple[int, int]]:
    """(id, epoch) of a transactional first batch."""
    end = _first_v2_batch_end(records)
    if end is None or end < HEADER_BYTES:
        return []
    batch = read_record_batch(records, 0, end)
    return [(batch.producer_id, batch.producer_epoch)] if batch.is_transactional and batch.has_producer_id else []


def _first_v2_batch_end(records: memoryview) -> int | None:
    """Where the first batch ends when it is one of magic 2; None for anything else, damaged ones included."""
    try:
        end = next_batch_end(records, 0)
    except CorruptBatch:
        return None
    return end if end is not None and magic_at(records, 0) == _MAGIC_2 else None
