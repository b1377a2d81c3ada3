"""Produce answers, versions 0 to 13, walked and written by hand: they are on the hot path.

Held to the construct schema `protocol.messages.produce.RESPONSE` by property tests. A broker's answer is walked to find
where each partition's entry lies, so that some entries can be replaced without touching anything else the broker said.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError

from protocol.errors import ErrorCode, MalformedMessage
from protocol.headers import skip_tagged_fields
from protocol.varint import read_unsigned_varint, unsigned_varint

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_INDEX_CODE_OFFSET = Struct(">ihq")
_UUID_BYTES = 16

_APPEND_TIME_SINCE = 2
_LOG_START_SINCE = 5
_RECORD_ERRORS_SINCE = 8
_FLEXIBLE_SINCE = 9
_NODE_ENDPOINTS_SINCE = 10
_TOPIC_ID_SINCE = 13
_NO_OFFSET = -1

TopicKey = str | bytes
"""How a topic is named in an answer: by name up to version 12, by its 16-byte id from 13."""


@dataclass(frozen=True, slots=True)
class RecordError:
    """One record's refusal (KIP-467): its position in the batch and why."""

    batch_index: int
    message: str | None


@dataclass(frozen=True, slots=True)
class PartitionRefusal:
    """What is answered for a partition that was refused; `log_start_offset` is -1 where it is not known or not told."""

    code: ErrorCode
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    log_start_offset: int = _NO_OFFSET


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """One partition's entry in a broker's answer: frame[start:end], and what it says."""

    topic: TopicKey
    index: int
    code: int
    log_start_offset: int
    start: int
    end: int


@dataclass(slots=True)
class BrokerAnswer:
    """A walked answer: its entries in order, then from `tail_at` on throttle time and tags."""

    frame: bytes | bytearray
    entries: list[PartitionAnswer]
    tail_at: int
    has_node_endpoints: bool

    @property
    def tail(self) -> bytes:
        """What follows the topics."""
        return bytes(self.frame[self.tail_at :])

    def with_entries(self, replacements: Mapping[int, bytes], tail: bytes) -> bytes:
        """The answer with other bytes for some entries (by position in `entries`) and for its tail."""
        parts: list[bytes | bytearray] = []
        copied_to = 0
        for position in sorted(replacements):
            entry = self.entries[position]
            parts += (self.frame[copied_to : entry.start], replacements[position])
            copied_to = entry.end
        return b"".join((*parts, self.frame[copied_to : self.tail_at], tail))


def encode_refusal(index: int, refusal: PartitionRefusal, version: int) -> bytes:
    """The partition entry of a refusal; versions before 8 carry only the code."""
    parts = [_INDEX_CODE_OFFSET.pack(index, refusal.code, _NO_OFFSET)]
    if version >= _APPEND_TIME_SINCE:
        parts.append(_INT64.pack(_NO_OFFSET))
    if version >= _LOG_START_SINCE:
        parts.append(_INT64.pack(refusal.log_start_offset))
    if version >= _RECORD_ERRORS_SINCE:
        flexible = version >= _FLEXIBLE_SINCE
        tags = b"\0" if flexible else b""
        parts.append(_count(len(refusal.record_errors), flexible))
        for record_error in refusal.record_errors:
            parts += (_INT32.pack(record_error.batch_index), _nullable_string(record_error.message, flexible), tags)
        parts += (_nullable_string(refusal.message, flexible), tags)
    return b"".join(parts)


def walk_produce_answer(frame: bytes | bytearray, version: int, body_at: int) -> BrokerAnswer:
    """Find the entries of a broker's answer. Raises MalformedMessage when it does not follow the schema."""
    try:
        return _Walk(frame, version, body_at).answer()
    except (StructError, IndexError) as error:
        raise MalformedMessage(f"Produce answer v{version} ends too early") from error


class _Walk:
    def __init__(self, frame: bytes | bytearray, version: int, position: int) -> None:
        self._frame = frame
        self._version = version
        self._flexible = version >= _FLEXIBLE_SINCE
        self._position = position

    def answer(self) -> BrokerAnswer:
        entries: list[PartitionAnswer] = []
        for _ in range(self._read_count()):
            key = self._topic_key()
            entries += [self._entry(key) for _ in range(self._read_count())]
            self._skip_tags()
        tail_at = self._position
        has_tags = self._version >= _NODE_ENDPOINTS_SINCE and len(self._frame) > tail_at + _INT32.size
        return BrokerAnswer(self._frame, entries, tail_at, has_tags and self._frame[tail_at + _INT32.size] != 0)

    def _topic_key(self) -> TopicKey:
        if self._version >= _TOPIC_ID_SINCE:
            self._position += _UUID_BYTES
            return bytes(self._frame[self._position - _UUID_BYTES : self._position])
        length = self._read_length(_INT16)
        self._position += length
        return bytes(self._frame[self._position - length : self._position]).decode()

    def _entry(self, topic: TopicKey) -> PartitionAnswer:
        start = self._position
        index, code, _base_offset = _INDEX_CODE_OFFSET.unpack_from(self._frame, start)
        self._position += _INDEX_CODE_OFFSET.size
        if self._version >= _APPEND_TIME_SINCE:
            self._position += _INT64.size
        log_start_offset = _NO_OFFSET
        if self._version >= _LOG_START_SINCE:
            (log_start_offset,) = _INT64.unpack_from(self._frame, self._position)
            self._position += _INT64.size
        if self._version >= _RECORD_ERRORS_SINCE:
            for _ in range(self._read_count()):
                self._position += _INT32.size
                self._skip_string()
                self._skip_tags()
            self._skip_string()
        self._skip_tags()
        if self._position > len(self._frame):
            raise MalformedMessage(f"Produce answer v{self._version} ends within a partition")
        return PartitionAnswer(topic, index, code, log_start_offset, start, self._position)

    def _skip_string(self) -> None:
        length = self._read_length(_INT16)  # moves the position itself, so it must come first
        self._position += max(0, length)

    def _read_count(self) -> int:
        return max(0, self._read_length(_INT32))

    def _read_length(self, fixed: Struct) -> int:
        if self._flexible:
            biased, self._position = read_unsigned_varint(self._frame, self._position)
            length = biased - 1
        else:
            (length,) = fixed.unpack_from(self._frame, self._position)
            self._position += fixed.size
        if length > len(self._frame) - self._position:
            raise MalformedMessage(f"Produce answer v{self._version}: a length of {length} runs over its end")
        return length

    def _skip_tags(self) -> None:
        if self._flexible:
            self._position = skip_tagged_fields(self._frame, self._position)


def _count(count: int, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _string(text: str, flexible: bool) -> bytes:
    data = text.encode()
    return (unsigned_varint(len(data) + 1) if flexible else _INT16.pack(len(data))) + data


def _nullable_string(text: str | None, flexible: bool) -> bytes:
    if text is None:
        return b"\0" if flexible else _INT16.pack(-1)
    return _string(text, flexible)
