"""Judges message sets of magic 0 and 1, which Produce v0 to v2 carry (Kafka up to 3.9).

Magic 0 has no time, so nothing of it is out of range. Plain messages may come several in a row, each judged as a
batch of its own, as a broker does; a compressed wrapper stands alone and the times of its inner messages count.
"""

from collections.abc import Iterator

from protocol.errors import ErrorCode
from protocol.records.codec import Codec
from protocol.records.compression import Decompressor, Failure
from protocol.records.message_set import BrokenMessage, Message, inner_messages, is_valid_message, read_message
from protocol.records.record_batch import CorruptBatch, next_batch_end
from validation import wording
from validation.policy import JudgementLimits, TopicPolicy
from validation.refusals import refuse_records
from validation.timestamps import NO_TIMESTAMP, TimeWindow
from validation.verdict import Accepted, BadRecord, Reason, Refused, Verdict


class _Refusal(Exception):
    """Carries a refusal out of the walk."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.reason)
        self.refused = refused


def judge_message_set(
    topic: str,
    partition: int,
    records: memoryview,
    policy: TopicPolicy,
    limits: JudgementLimits,
    window: TimeWindow | None,
    decompressor: Decompressor,
) -> Verdict:
    """The verdict on a set of magic 0 and 1 messages; `window` is None where the broker sets the time itself."""
    judge = _MessageSetJudge(topic, partition, policy, limits, window, decompressor)
    try:
        return judge.judge(records)
    except _Refusal as refusal:
        return refusal.refused
    except CorruptBatch as error:
        return Refused(error.code, Reason.MAGIC)
    except BrokenMessage:
        return Refused(ErrorCode.INVALID_RECORD, Reason.STRUCTURE)


def check_stored_message(records: memoryview, start: int, end: int, policy: TopicPolicy) -> Refused | Message:
    """A message of magic 0 or 1 as the log sees it before its content: size and CRC. Raises BrokenMessage."""
    if policy.max_message_bytes is not None and end - start > policy.max_message_bytes:
        return Refused(ErrorCode.MESSAGE_TOO_LARGE, Reason.TOO_LARGE)
    if not is_valid_message(records, start, end):
        return Refused(ErrorCode.CORRUPT_MESSAGE, Reason.CRC)
    return read_message(records, start, end)


class _MessageSetJudge:
    def __init__(
        self,
        topic: str,
        partition: int,
        policy: TopicPolicy,
        limits: JudgementLimits,
        window: TimeWindow | None,
        decompressor: Decompressor,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._policy = policy
        self._limits = limits
        self._window = window
        self._decompressor = decompressor
        self._latest = 0

    def judge(self, records: memoryview) -> Verdict:
        outer = list(self._stored_messages(records))
        if not outer:
            return Accepted(0, 0)
        compressed = any(message.codec_id for message in outer)
        if compressed and len(outer) > 1:
            return Refused(ErrorCode.INVALID_RECORD, Reason.TWO_BATCHES, records=len(outer))
        if not compressed:
            return self._judge_plain(outer)
        return self._judge_wrapper(outer[0])

    def _stored_messages(self, records: memoryview) -> Iterator[Message]:
        """The outer messages, each checked for size and CRC as the log does before it looks inside."""
        start = 0
        while (end := next_batch_end(records, start)) is not None:
            message = check_stored_message(records, start, end, self._policy)
            if isinstance(message, Refused):
                raise _Refusal(message)
            yield message
            start = end

    def _judge_plain(self, messages: list[Message]) -> Verdict:
        for message in messages:
            if message.magic != messages[0].magic:
                return Refused(ErrorCode.INVALID_RECORD, Reason.MAGIC, records=len(messages))
            error = self._record_error(message, message, 0, message.offset, message.timestamp)
            if error is not None:
                return refuse_records([error], len(messages))
        return Accepted(len(messages), self._ahead_ms())

    def _judge_wrapper(self, wrapper: Message) -> Verdict:
        inner = self._unwrap(wrapper)
        base = self._base_offset(wrapper, inner)
        bad: list[BadRecord] = []
        for index, message in enumerate(inner):
            error = self._inner_error(wrapper, message, index, base + message.offset)
            if error is not None:
                bad.append(error)
        return refuse_records(bad, len(inner)) if bad else Accepted(len(inner), self._ahead_ms())

    def _unwrap(self, wrapper: Message) -> list[Message]:
        if wrapper.codec_id > Codec.ZSTD:
            raise _Refusal(Refused(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.CODEC))
        if wrapper.codec_id == Codec.ZSTD:
            raise _Refusal(Refused(ErrorCode.INVALID_RECORD, Reason.CODEC))
        if wrapper.value is None:
            raise BrokenMessage("a compressed message without a value")
        limit = self._limits.decompressed_limit(len(wrapper.value))
        plain = self._decompressor.decompress(Codec(wrapper.codec_id), wrapper.value, limit, wrapper.magic)
        if plain.failure is Failure.OVER_LIMIT:
            text = wording.decompression_limit(self._topic, self._partition, limit)
            raise _Refusal(Refused(ErrorCode.INVALID_RECORD, Reason.DECOMPRESSION_LIMIT, text))
        if plain.failure is Failure.DAMAGED:
            raise _Refusal(Refused(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.DAMAGED_PAYLOAD))
        inner = inner_messages(plain.data)
        if not inner:
            raise BrokenMessage("a compressed message without inner messages")
        return inner

    def _base_offset(self, wrapper: Message, inner: list[Message]) -> int:
        """What is added to inner offsets: magic 1 counts them from the wrapper's, which is the last (KIP-31)."""
        if wrapper.magic == 0 or wrapper.offset == 0:
            return 0
        if wrapper.offset < inner[-1].offset:
            raise BrokenMessage("the wrapper's offset is below that of its last inner message")
        return wrapper.offset - inner[-1].offset

    def _inner_error(self, wrapper: Message, message: Message, index: int, offset: int) -> BadRecord | None:
        if message.codec_id:
            raise _Refusal(Refused(ErrorCode.INVALID_RECORD, Reason.NESTED_COMPRESSION))
        claims_append_time = wrapper.is_log_append_time and message.magic > 0
        timestamp = wrapper.timestamp if claims_append_time else message.timestamp
        if message.magic != wrapper.magic:
            shown = _render(message, timestamp, claims_append_time)
            text = (
                f"Record {_legacy_batch(offset, shown)}'s magic does not match outer magic {wrapper.magic} "
                f"in topic partition {self._topic}-{self._partition}"
            )
            return BadRecord(index, timestamp, Reason.INNER_MAGIC, text)
        if not message.has_valid_crc:
            raise _Refusal(Refused(ErrorCode.CORRUPT_MESSAGE, Reason.CRC))
        return self._record_error(wrapper, message, index, offset, timestamp)

    def _record_error(
        self, outer: Message, message: Message, index: int, offset: int, timestamp: int
    ) -> BadRecord | None:
        if self._policy.compacted and message.key_size < 0:
            text = wording.key_missing(self._topic, self._partition)
            return BadRecord(index, timestamp, Reason.NULL_KEY, text)
        if self._window is not None and timestamp != NO_TIMESTAMP:
            breach = self._window.breach(timestamp)
            if breach is not None:
                text = wording.timestamp_out_of_range(timestamp, offset, self._window.earliest, self._window.latest)
                return BadRecord(index, timestamp, breach, text)
            self._latest = max(self._latest, timestamp)
        elif outer.is_log_append_time:
            record = _legacy_batch(offset, _render(message, timestamp, claims_append_time=True))
            return BadRecord(index, timestamp, Reason.TIMESTAMP_TYPE, wording.log_append_time_claimed(record))
        return None

    def _ahead_ms(self) -> int:
        return self._latest - self._window.now_ms if self._window is not None and self._latest else 0


def _legacy_batch(offset: int, record: str) -> str:
    return f"LegacyRecordBatch(offset={offset}, {record})"


def _render(message: Message, timestamp: int, claims_append_time: bool) -> str:
    """A magic 0 or 1 message as a broker prints it."""
    value_size = 0 if message.value is None else len(message.value)
    sizes = f"key={max(message.key_size, 0)} bytes, value={value_size} bytes"
    head = f"magic={message.magic}, attributes={message.attributes}, compression=NONE, crc={message.crc}"
    if message.magic == 0:
        return f"Record({head}, {sizes})"
    kind = "LogAppendTime" if claims_append_time else "CreateTime"
    return f"Record({head}, {kind}={timestamp}, {sizes})"
