"""Produce answers, versions 0 to 13, walked and written by hand: they are on the hot path.

Held to the construct schema `protocol.messages.produce.RESPONSE` by property tests. A broker's answer is walked to find
where each partition's entry lies, so that some entries can be replaced without touching anything else the broker said.
Compiled with the types in produce_response.pxd where a C compiler was at hand: there no index is checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct

from protocol.errors import ErrorCode, MalformedMessage
from protocol.varint import read_unsigned_varint, unsigned_varint

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_INDEX_CODE_OFFSET = Struct(">ihq")
_UUID_BYTES = 16
_INT16_BYTES = 2
_INT32_BYTES = 4
_INT64_BYTES = 8
_MAX_VARINT_SHIFT = 28
# Named, because Cython takes a literal this large for an object.
_SIGN_16 = 0x8000
_SIGN_32 = 0x8000_0000
_LOW_32 = 0xFFFF_FFFF

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
    walk = _Walk(frame, version, body_at)
    entries: list[PartitionAnswer] = []
    topics_left = walk.count()
    while topics_left > 0:
        key_at = walk.position
        walk.skip_topic_key()
        key = _topic_key(frame, version, key_at, walk.position)
        entries_left = walk.count()
        while entries_left > 0:
            start = walk.position
            walk.entry()
            entries.append(PartitionAnswer(key, walk.index, walk.code, walk.log_start_offset, start, walk.position))
            entries_left -= 1
        walk.skip_tags()
        topics_left -= 1
    return BrokerAnswer(frame, entries, walk.position, walk.has_node_endpoints())


def names_endpoints(frame: bytes | bytearray, version: int, body_at: int) -> bool:
    """Whether a broker's answer names node endpoints (KIP-951), which few do. Raises MalformedMessage."""
    walk = _Walk(frame, version, body_at)
    walk.skip_topics()
    return walk.has_node_endpoints()


def _topic_key(frame: bytes | bytearray, version: int, start: int, end: int) -> TopicKey:
    if version >= _TOPIC_ID_SINCE:
        return bytes(frame[start:end])
    length_bytes = _INT16_BYTES
    if version >= _FLEXIBLE_SINCE:
        length_bytes = read_unsigned_varint(frame, start)[1] - start
    return bytes(frame[start + length_bytes : end]).decode()


class _Walk:
    def __init__(self, frame: bytes | bytearray, version: int, position: int) -> None:
        self.data = frame
        self.version = version
        self.flexible = version >= _FLEXIBLE_SINCE
        self.position = position
        self.end = len(frame)
        # Of the entry last read:
        self.index = 0
        self.code = 0
        self.log_start_offset = _NO_OFFSET

    def skip_topics(self) -> None:
        topics_left = self.count()
        while topics_left > 0:
            self.skip_topic_key()
            entries_left = self.count()
            while entries_left > 0:
                self.entry()
                entries_left -= 1
            self.skip_tags()
            topics_left -= 1

    def has_node_endpoints(self) -> bool:
        """Behind the topics come the throttle time and the tags."""
        if self.version < _NODE_ENDPOINTS_SINCE or self.end - self.position <= _INT32_BYTES:
            return False
        return self.data[self.position + _INT32_BYTES] != 0

    def skip_topic_key(self) -> None:
        if self.version >= _TOPIC_ID_SINCE:
            self.skip(_UUID_BYTES)
        else:
            self.skip_string()

    def entry(self) -> None:
        self.index = self.int32()
        self.code = self.int16()
        self.skip(_INT64_BYTES)  # the base offset
        if self.version >= _APPEND_TIME_SINCE:
            self.skip(_INT64_BYTES)
        self.log_start_offset = self.int64() if self.version >= _LOG_START_SINCE else _NO_OFFSET
        if self.version >= _RECORD_ERRORS_SINCE:
            errors_left = self.count()
            while errors_left > 0:
                self.skip(_INT32_BYTES)
                self.skip_string()
                self.skip_tags()
                errors_left -= 1
            self.skip_string()
        self.skip_tags()

    def skip(self, size: int) -> None:
        if size > self.end - self.position:
            raise MalformedMessage(f"Produce answer v{self.version} ends too early")
        self.position += size

    def int16(self) -> int:
        at = self.position
        self.skip(_INT16_BYTES)
        value = self.data[at] << 8 | self.data[at + 1]
        return (value ^ _SIGN_16) - _SIGN_16

    def int32(self) -> int:
        at = self.position
        self.skip(_INT32_BYTES)
        value = self.data[at]  # first into a wide variable: a C int would overflow
        value = value << 24 | self.data[at + 1] << 16 | self.data[at + 2] << 8 | self.data[at + 3]
        return (value ^ _SIGN_32) - _SIGN_32

    def int64(self) -> int:
        high = self.int32()
        low = self.int32() & _LOW_32
        return high << 32 | low

    def skip_string(self) -> None:
        length = self.length(_INT16_BYTES)
        if length > 0:
            self.skip(length)

    def count(self) -> int:
        return self.length(_INT32_BYTES)

    def length(self, fixed_bytes: int) -> int:
        """A length or count; negative is null. `fixed_bytes`: its size in versions that have no varints."""
        if self.flexible:
            length = self.unsigned_varint() - 1
        elif fixed_bytes == _INT16_BYTES:
            length = self.int16()
        else:
            length = self.int32()
        if length > self.end - self.position:
            raise MalformedMessage(f"Produce answer v{self.version}: a length of {length} runs over its end")
        return length

    def unsigned_varint(self) -> int:
        value = 0
        shift = 0
        while shift <= _MAX_VARINT_SHIFT:
            at = self.position
            self.skip(1)
            byte = self.data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise MalformedMessage(f"Produce answer v{self.version}: a varint is longer than five bytes")

    def skip_tags(self) -> None:
        left = self.unsigned_varint() if self.flexible else 0
        while left > 0:
            self.unsigned_varint()
            self.skip(self.unsigned_varint())
            left -= 1


def _count(count: int, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _string(text: str, flexible: bool) -> bytes:
    data = text.encode()
    return (unsigned_varint(len(data) + 1) if flexible else _INT16.pack(len(data))) + data


def _nullable_string(text: str | None, flexible: bool) -> bytes:
    if text is None:
        return b"\0" if flexible else _INT16.pack(-1)
    return _string(text, flexible)
