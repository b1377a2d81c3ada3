"""Validates message sets of magic 0 and 1, which Produce v0 to v2 contain (up to Kafka 3.9).

Messages of magic 0 have no timestamps, so these are never out of range. A set may consist of several uncompressed
messages; like a broker, the proxy validates each as a batch of its own. A compressed wrapper must be the only message;
the timestamps of its inner messages are validated. The set is read in one pass, and only listed record errors are kept.
"""

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.integers import ALL_64
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import DecompressedStream, Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit, PayloadLimits
from sluicegate.protocol.records.message_set import BrokenMessage, Message, MessageStream, has_crc
from sluicegate.protocol.records.record_batch import (
    CODEC_MASK,
    MAGIC_2,
    NO_TIMESTAMP,
    CorruptBatch,
    magic_at,
    next_batch_end,
)
from sluicegate.validation.findings import (
    APPEND_TIME,
    DESCRIBED_WORK,
    NULL_KEY,
    OTHER_MAGIC,
    OUT_OF_WINDOW,
    TEXTS_AT_LEAST,
    FlawedMessage,
    LegacyErrors,
    finding_about_records,
    finding_over_limit,
)
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.structure import check_stored_form
from sluicegate.validation.timestamps import TimeWindow
from sluicegate.validation.verdict import Accepted, Finding, Reason, Verdict

# The cost of a message, in bytes of work.
_MESSAGE_WORK = 128
_TIME_FLAWS = frozenset({OUT_OF_WINDOW, APPEND_TIME})
_CODECS = tuple(Codec)
_LAST_CODEC = Codec.LZ4.value
_ZSTD = Codec.ZSTD.value


def validate_message_set(
    topic: str,
    partition: int,
    records: memoryview,
    policy: TopicPolicy,
    limits: ValidationLimits,
    window: TimeWindow | None,
    decompressor: Decompressor,
    budget: DecompressionBudget,
) -> Verdict:
    """Return the verdict on a set of messages of magic 0 and 1.

    `window` is None if the broker sets timestamps. Raises Abandoned.
    """
    validator = _MessageSetValidator(LegacyErrors(topic, partition, window), policy, limits, decompressor, budget)
    try:
        return validator.validate(records)
    except CorruptBatch as error:
        return Finding(error.code, Reason.UNSUPPORTED_MAGIC)
    except BrokenMessage:
        return Finding(ErrorCode.INVALID_RECORD, Reason.RECORD_FORMAT)


def check_stored_message(records: memoryview, start: int, end: int, policy: TopicPolicy) -> Finding | None:
    """Check the size and CRC of a message of magic 0 or 1. A broker's log checks these before the content."""
    most = policy.max_message_bytes
    if most is not None and end - start > most:
        return Finding(ErrorCode.MESSAGE_TOO_LARGE, Reason.BATCH_TOO_LARGE)
    if not has_crc(records, records, start, end):
        return Finding(ErrorCode.CORRUPT_MESSAGE, Reason.CRC_MISMATCH)
    return None


class _Found:
    """The bad messages in a wrapper.

    `count` is their number, and `kept` contains the first `keep` of them. `fatal` is the flaw that ended the search.
    """

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.count = 0
        self.kept: list[FlawedMessage] = []
        self.first_time: FlawedMessage | None = None
        self.fatal: Finding | None = None

    def note(self, index: int, flaw: int, message: Message, timestamp: int) -> None:
        """Count a bad message, and keep it if fewer than `keep` are kept."""
        self.count += 1
        is_first_time = self.first_time is None and flaw in _TIME_FLAWS
        if self.count <= self.keep or is_first_time:
            flawed = FlawedMessage(index, flaw, message.copy(), timestamp)
            if self.count <= self.keep:
                self.kept.append(flawed)
            if is_first_time:
                self.first_time = flawed


class _MessageSetValidator:
    def __init__(
        self,
        errors: LegacyErrors,
        policy: TopicPolicy,
        limits: ValidationLimits,
        decompressor: Decompressor,
        budget: DecompressionBudget,
    ) -> None:
        self._errors = errors
        self._limits = limits
        self._decompressor = decompressor
        self._budget = budget
        self._policy = policy
        self._needs_keys = policy.compacted
        self._window = errors.window
        self._has_window = errors.window is not None
        self._earliest = self._width = self._overflow = 0
        if errors.window is not None:
            self._earliest, self._width, _, self._overflow = errors.window.as_scanned(0)
        self._latest = 0

    def validate(self, records: memoryview) -> Verdict:
        """Check the size and CRC of all outer messages, as a broker's log does, before the content of any message."""
        message = Message()
        first: Message | None = None
        flawed: FlawedMessage | None = None
        count = start = 0
        is_compressed = mixes_magics = False
        while (end := next_batch_end(records, start)) is not None:
            self._budget.worked(end - start + _MESSAGE_WORK)
            if magic_at(records, start) == MAGIC_2:  # never true for the first message
                batch = check_stored_form(records, start, end, self._policy)
                if isinstance(batch, Finding):
                    return batch
                is_compressed = is_compressed or batch.attributes & CODEC_MASK != 0
                mixes_magics = mixes_magics or flawed is None
                count += 1
                start = end
                continue
            rejected = check_stored_message(records, start, end, self._policy)
            if rejected is not None:
                return rejected
            message.read(records, start, end)
            if first is None:
                first = message.copy()
            if message.codec_id:
                is_compressed = True
            elif flawed is None and not mixes_magics:
                mixes_magics = message.magic != first.magic
                flaw = 0 if mixes_magics else self._flaw_of(message, message.timestamp, message)
                if flaw:
                    flawed = FlawedMessage(0, flaw, message.copy(), message.timestamp)
            count += 1
            start = end
        if first is None:
            return Accepted(0, 0)
        if is_compressed:
            if count > 1:
                return Finding(ErrorCode.INVALID_RECORD, Reason.SEVERAL_BATCHES, records=count)
            return self._validate_wrapper(first, records)
        return self._validated_plain(flawed, mixes_magics, count)

    def _validated_plain(self, flawed: FlawedMessage | None, mixes_magics: bool, count: int) -> Verdict:
        """Return the verdict on uncompressed messages. The first flaw decides it."""
        if flawed is not None:
            described = self._errors.describe(flawed, flawed.message, 0)
            time_reason = described.reason if flawed.flaw in _TIME_FLAWS else None
            return finding_about_records([described], 1, time_reason, count, self._budget)
        if mixes_magics:
            return Finding(ErrorCode.INVALID_RECORD, Reason.UNSUPPORTED_MAGIC, records=count)
        return Accepted(count, self._ahead_ms(), has_time=self._latest > 0)

    def _validate_wrapper(self, wrapper: Message, records: memoryview) -> Verdict:
        codec_id = wrapper.codec_id
        if codec_id == _ZSTD:
            return Finding(ErrorCode.INVALID_RECORD, Reason.UNSUPPORTED_CODEC)
        if codec_id > _LAST_CODEC:
            return Finding(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.UNSUPPORTED_CODEC)
        if wrapper.value_size < 0:
            raise BrokenMessage("a compressed message without a value")
        value = records[wrapper.value_at : wrapper.value_at + wrapper.value_size]
        bounds = PayloadLimits(
            self._limits.plain_limit(len(value)), self._limits.max_decompression_window_bytes, self._budget
        )
        pieces = self._decompressor.open(_CODECS[codec_id], value, bounds, wrapper.magic)
        try:
            return self._validate_inner(wrapper, pieces)
        except OverLimit as over:
            return finding_over_limit(self._errors.topic, self._errors.partition, over, 0)
        finally:
            self._decompressor.close()

    def _validate_inner(self, wrapper: Message, pieces: DecompressedStream) -> Verdict:
        """Read the whole payload before reporting any message, as a broker does."""
        stream = MessageStream(pieces, self._limits.max_decompression_window_bytes, self._budget)
        message = stream.message
        found = _Found(max(self._budget.record_errors, TEXTS_AT_LEAST))
        index = last_offset = 0
        while stream.read_next():
            last_offset = message.offset
            if found.fatal is None:
                self._check(stream, wrapper, index, found)
            index += 1
        if pieces.failure is not None:
            return Finding(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.DAMAGED_PAYLOAD)
        if index == 0:
            raise BrokenMessage("a compressed message without inner messages")
        base = _base_offset(wrapper, last_offset)
        if found.fatal is not None:
            return found.fatal
        if found.count == 0:
            return Accepted(index, self._ahead_ms(), has_time=self._latest > 0)
        described = []
        for flawed in found.kept:
            described.append(self._errors.describe(flawed, wrapper, base))
            self._budget.worked(DESCRIBED_WORK)
        first_time = self._errors.describe(found.first_time, wrapper, base).reason if found.first_time else None
        return finding_about_records(described, found.count, first_time, index, self._budget)

    def _check(self, stream: MessageStream, wrapper: Message, index: int, found: "_Found") -> None:
        message = stream.message
        timestamp = message.timestamp
        if wrapper.is_log_append_time and message.magic > 0:
            timestamp = wrapper.timestamp
        flaw = 0
        if message.codec_id:
            found.fatal = Finding(ErrorCode.INVALID_RECORD, Reason.NESTED_COMPRESSION)
        elif message.magic != wrapper.magic:
            flaw = OTHER_MAGIC
        elif not stream.has_crc():
            found.fatal = Finding(ErrorCode.CORRUPT_MESSAGE, Reason.CRC_MISMATCH)
        else:
            flaw = self._flaw_of(message, timestamp, wrapper)
        if flaw:
            found.note(index, flaw, message, timestamp)

    def _flaw_of(self, message: Message, timestamp: int, outer: Message) -> int:
        """Return a record's flaw, or 0. `outer` is the message that declares the timestamp type."""
        if self._needs_keys and message.key_size < 0:
            return NULL_KEY
        if self._has_window and timestamp != NO_TIMESTAMP:
            ahead = (timestamp - self._earliest) & ALL_64
            if ahead > self._width and ahead != self._overflow:
                return OUT_OF_WINDOW
            self._latest = max(self._latest, timestamp)
        elif outer.is_log_append_time:
            return APPEND_TIME
        return 0

    def _ahead_ms(self) -> int:
        return self._latest - self._window.now_ms if self._window is not None and self._latest else 0


def _base_offset(wrapper: Message, last_offset: int) -> int:
    """Return the number to add to inner offsets. In magic 1, the wrapper has the last message's offset (KIP-31)."""
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    if wrapper.offset < last_offset:
        raise BrokenMessage("the wrapper's offset is below that of its last inner message")
    return wrapper.offset - last_offset
