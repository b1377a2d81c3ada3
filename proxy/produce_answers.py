"""What a client gets for a judged Produce request in which something was refused.

The broker is sent a stand-in for every refused batch (`protocol.records.stand_in`), so its answer has an entry for
each partition: where it complains of the stand-in, our verdict is put in its place; where it complains of something
that comes before a batch's content, or of the whole request, the broker's word stands.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from protocol.errors import ErrorCode
from protocol.produce_request import ProduceRequest, TopicData
from protocol.produce_response import (
    PartitionRefusal,
    RecordError,
    TopicKey,
    encode_refusal,
    walk_produce_answer,
)
from protocol.records.record_batch import HEADER_UP_TO_MAGIC_BYTES, CorruptBatch, magic_at, next_batch_end
from protocol.records.stand_in import breaking_piece, stand_in, stand_in_for_log_start
from proxy.log_starts import LogStarts
from proxy.rewriting import AnswerRewriter
from validation.produce import JudgedRequest, Place
from validation.verdict import Refused, Stage

_ONE_BATCH_SINCE = 3
_LOG_START_SINCE = 5
_MAGIC_2 = 2
# What the various brokers there are say to a stand-in; success too, because a stand-in holds nothing to store.
_SAID_TO_STAND_INS = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_FETCH_SIZE,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_RECORD,
    }
)
_OF_WHOLE_REQUESTS = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR})
# A request that is refused as a whole gets the same code for all of it: only success is not believed then.
_REPLACED = {
    Stage.REQUEST: frozenset({ErrorCode.NONE}),
    Stage.PARTITION: _SAID_TO_STAND_INS,
    Stage.LOG: _SAID_TO_STAND_INS,
}
# With these a broker tells a partition's log start offset.
_TELL_LOG_START = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP, ErrorCode.UNKNOWN_SERVER_ERROR})


@dataclass(frozen=True, slots=True)
class _Entry:
    """What stands in for the broker's word on a stand-in; `log_start_offset` None: as the broker tells it."""

    refused: Refused
    log_start_offset: int | None


class PartlyRefused:
    """A request that goes to the broker with stand-ins, and what its answer becomes."""

    def __init__(self, request: ProduceRequest, judged: JudgedRequest, log_starts: LogStarts, now_ms: int) -> None:
        self._version = request.version
        self._log_starts = log_starts
        self._entries: dict[tuple[TopicKey, int], _Entry] = {}
        self._breaking: set[tuple[TopicKey, int]] = set()
        self.stand_ins: dict[Place, bytes] = {}
        for place in _places(request):
            self._put(request, place, judged.refused.get(place), now_ms)

    @property
    def refuses_anything(self) -> bool:
        """Whether a refused batch counts: not when its partition is named again behind it, with a good one."""
        return bool(self._entries)

    def _put(self, request: ProduceRequest, place: Place, refused: Refused | None, now_ms: int) -> None:
        topic = request.topics[place[0]]
        spot = key_of(topic), topic.partitions[place[1]].index
        before = self._entries.get(spot)
        self._breaking.discard(spot)  # of a partition named twice a broker takes the last that keeps the rules
        if refused is None:
            if before is not None and before.refused.stage is Stage.LOG:
                del self._entries[spot]
            return
        records = request.records(*place) or memoryview(b"")
        if refused.stage is not Stage.LOG:
            self.stand_ins[place] = _breaking_the_rule(records, refused.stage)
            self._entries[spot] = _Entry(refused, -1)
            return
        breaking = breaking_piece(records)
        if breaking is not None:
            self.stand_ins[place] = stand_in(records) + breaking if self._version < _ONE_BATCH_SINCE else breaking
            self._breaking.add(spot)
            self._entries[spot] = _Entry(refused, -1)
            return
        start: int | None = -1
        if self._version >= _LOG_START_SINCE and refused.code in _TELL_LOG_START:
            start = self._log_starts.of(*spot, now_ms)
        self.stand_ins[place] = (stand_in if start is not None else stand_in_for_log_start)(records)
        if before is None or before.refused.stage is Stage.LOG:
            self._entries[spot] = _Entry(refused, start)

    def finish(self, frame: bytearray, body_at: int, rewriter: AnswerRewriter, now_ms: int) -> bytes:
        """The client's answer from the broker's. Raises MalformedMessage."""
        answer = walk_produce_answer(frame, self._version, body_at)
        fails = any(e.code in _OF_WHOLE_REQUESTS for e in answer.entries if (e.topic, e.index) in self._breaking)
        replaced = {}
        for position, said in enumerate(answer.entries):
            entry = self._entries.get((said.topic, said.index))
            if entry is None or said.code not in _REPLACED[Stage.REQUEST if fails else entry.refused.stage]:
                continue
            start = entry.log_start_offset
            if start is None:
                start = said.log_start_offset
                self._log_starts.learn(said.topic, said.index, start, now_ms)
            replaced[position] = encode_refusal(said.index, _as_answered(entry.refused, start), self._version)
        tail = answer.tail
        if answer.has_node_endpoints:
            tail = rewriter.produce_tail(tail)
        return answer.with_entries(replaced, tail)


def key_of(topic: TopicData) -> TopicKey:
    """How answers name a topic: by name up to version 12, by id from 13."""
    return topic.name if topic.name is not None else topic.topic_id or b""


def _places(request: ProduceRequest) -> Iterator[Place]:
    return ((t, p) for t, topic in enumerate(request.topics) for p in range(len(topic.partitions)))


def _breaking_the_rule(records: memoryview, stage: Stage) -> bytes:
    """What breaks the same rule: a first batch whose head cannot be, two batches where one must be, or none at all."""
    try:
        end = next_batch_end(records, 0)
    except CorruptBatch:
        return bytes(records[:HEADER_UP_TO_MAGIC_BYTES])
    if stage is Stage.REQUEST:
        return stand_in(records)
    if end is None or magic_at(records, 0) != _MAGIC_2:
        return b""
    return stand_in(records) + _second(records, end)


def _second(records: memoryview, start: int) -> bytes:
    """A second batch, whose head cannot be where the one behind the first cannot."""
    try:
        next_batch_end(records, start)
    except CorruptBatch:
        return bytes(records[start : start + HEADER_UP_TO_MAGIC_BYTES])
    return stand_in(records)


def _as_answered(refused: Refused, log_start_offset: int) -> PartitionRefusal:
    errors = tuple(RecordError(record.index, record.message) for record in refused.bad_records)
    return PartitionRefusal(refused.code, refused.message, errors, log_start_offset)
