"""Walks and writes Produce responses, versions 0 to 13, without construct, because they are on the hot path.

Property tests compare the results with the schema `sluicegate.protocol.messages.produce.PRODUCE_RESPONSE`. The walk
finds each partition's entry in a broker's response, so that some entries can be replaced while all other bytes stay
unchanged. Compiled with the types in produce_response.pxd if a C compiler is installed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.produce_versions import (
    APPEND_TIME_SINCE,
    FLEXIBLE_SINCE,
    LOG_START_SINCE,
    NODE_ENDPOINTS_SINCE,
    RECORD_ERRORS_SINCE,
    THROTTLE_SINCE,
    TOPIC_ID_SINCE,
)
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS, Walk

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_INDEX_CODE_OFFSET = Struct(">ihq")
_UUID_BYTES = 16
_INT32_BYTES = 4
_INT64_BYTES = 8
# The maximum number of topics, partitions and record errors. Walking this many takes about 20 ms, and they do not fit
# into a frame with brokers' messages.
_MAX_ELEMENTS = 2_000_000

_LOG_START_AT = _INDEX_CODE_OFFSET.size + _INT64_BYTES  # after index, code, base offset and append time
_NO_OFFSET = -1

TopicKey = str | bytes
"""How a response identifies a topic: by name up to version 12, by its 16-byte id from 13 on."""


class RecordError(NamedTuple):
    """The rejection of one record (KIP-467): the record's position in the batch, and the reason."""

    batch_index: int
    message: str | None


@dataclass(slots=True)
class PartitionRejection:
    """The response for a rejected partition. `log_start_offset` is -1 if it is unknown."""

    code: ErrorCode
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    log_start_offset: int = _NO_OFFSET


@dataclass(frozen=True, slots=True)
class PartitionResponse:
    """One partition's entry in a broker's response, at frame[start:end], and its fields."""

    topic: TopicKey
    index: int
    code: int
    log_start_offset: int
    start: int
    end: int


@dataclass(slots=True)
class WalkedResponse:
    """A walked response. `entries` are its entries in order. The throttle time and the tags begin at `tail_at`."""

    frame: bytes | bytearray
    entries: list[PartitionResponse]
    tail_at: int
    has_node_endpoints: bool

    @property
    def tail(self) -> memoryview:
        """The bytes after the topics."""
        return memoryview(self.frame)[self.tail_at :]

    def with_entries(self, replacements: Mapping[int, bytes], tail: bytes | memoryview) -> Parts:
        """Return the response, in parts, with some entries (by position in `entries`) and the tail replaced."""
        view = memoryview(self.frame)
        parts: list[bytes | memoryview] = []
        copied_to = 0
        for position in sorted(replacements):
            entry = self.entries[position]
            parts += (view[copied_to : entry.start], replacements[position])
            copied_to = entry.end
        return *parts, view[copied_to : self.tail_at], tail


def encode_rejection(index: int, rejection: PartitionRejection, version: int) -> bytes:
    """Return a rejection's partition entry. Versions before 8 contain only the code."""
    parts = [_INDEX_CODE_OFFSET.pack(index, rejection.code, _NO_OFFSET)]
    if version >= APPEND_TIME_SINCE:
        parts.append(_INT64.pack(_NO_OFFSET))
    if version >= LOG_START_SINCE:
        parts.append(_INT64.pack(rejection.log_start_offset))
    if version >= RECORD_ERRORS_SINCE:
        flexible = version >= FLEXIBLE_SINCE
        tags = b"\0" if flexible else b""
        parts.append(_count(len(rejection.record_errors), flexible))
        for record_error in rejection.record_errors:
            parts += (_INT32.pack(record_error.batch_index), _nullable_string(record_error.message, flexible), tags)
        parts += (_nullable_string(rejection.message, flexible), tags)
    return b"".join(parts)


def response_of(version: int, topics: Mapping[TopicKey, Sequence[bytes]]) -> bytes:
    """Return the body of a whole response, from entries that `encode_rejection` has encoded, by topic."""
    flexible = version >= FLEXIBLE_SINCE
    tags = b"\0" if flexible else b""
    parts = [_count(len(topics), flexible)]
    for topic, entries in topics.items():
        name = topic if isinstance(topic, bytes) else _nullable_string(topic, flexible)
        parts += (name, _count(len(entries), flexible), *entries, tags)
    if version >= THROTTLE_SINCE:
        parts.append(_INT32.pack(0))
    return b"".join((*parts, tags))


def with_log_start(entry: bytes, log_start_offset: int) -> bytes:
    """Return an entry from `encode_rejection`, version 5 or later, with another log start offset."""
    return entry[:_LOG_START_AT] + _INT64.pack(log_start_offset) + entry[_LOG_START_AT + _INT64_BYTES :]


def produce_body_at(frame: bytes | bytearray, version: int) -> int:
    """Return the position of the body in a Produce response's frame. Raises MalformedMessage."""
    return response_body_at(frame, 1 if version >= FLEXIBLE_SINCE else 0)


def walk_produce_response(frame: bytes | bytearray, version: int, body_at: int, max_entries: int) -> WalkedResponse:
    """Find the entries in a broker's response. `max_entries` limits topics and partitions together.

    Raises MalformedMessage if the response does not follow the schema or exceeds the limit.
    """
    walk = _Walk()
    walk.begin(frame, version, version >= FLEXIBLE_SINCE, body_at, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
    entries: list[PartitionResponse] = []
    try:
        topics_left = walk.count()
        while topics_left > 0:
            max_entries -= 1
            key = walk.topic_key()
            entries_left = walk.count()
            max_entries -= entries_left
            if max_entries < 0:
                raise MalformedMessage("it has more partitions than the request")
            while entries_left > 0:
                start = walk.position
                walk.entry()
                entries.append(
                    PartitionResponse(key, walk.index, walk.code, walk.log_start_offset, start, walk.position)
                )
                entries_left -= 1
            walk.skip_tags()
            topics_left -= 1
    except MalformedMessage as error:
        raise MalformedMessage(f"Produce response v{version}: {error}") from error
    return WalkedResponse(frame, entries, walk.position, walk.has_node_endpoints())


def tail_at(frame: bytes | bytearray, version: int, body_at: int) -> int:
    """Return where a response's tail begins. Raises MalformedMessage."""
    return _after_topics(frame, version, body_at).position


def tail_with_endpoints(frame: bytes | bytearray, version: int, body_at: int) -> int:
    """Return where the tail of a broker's response begins, or -1 if it contains no node endpoints (KIP-951).

    Raises MalformedMessage.
    """
    walk = _after_topics(frame, version, body_at)
    return walk.position if walk.has_node_endpoints() else -1


def _after_topics(frame: bytes | bytearray, version: int, body_at: int) -> "_Walk":
    walk = _Walk()
    walk.begin(frame, version, version >= FLEXIBLE_SINCE, body_at, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
    try:
        walk.skip_topics()
    except MalformedMessage as error:
        raise MalformedMessage(f"Produce response v{version}: {error}") from error
    return walk


class _Walk(Walk):
    # The last entry's fields.
    index: int
    code: int
    log_start_offset: int

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
        """Return whether tags follow the throttle time."""
        if self.version < NODE_ENDPOINTS_SINCE or self.end - self.position <= _INT32_BYTES:
            return False
        return self.data[self.position + _INT32_BYTES] != 0

    def topic_key(self) -> TopicKey:
        return self.bytes_of(_UUID_BYTES) if self.version >= TOPIC_ID_SINCE else self.required_string()

    def skip_topic_key(self) -> None:
        if self.version >= TOPIC_ID_SINCE:
            self.skip(_UUID_BYTES)
        else:
            self.skip_string()

    def entry(self) -> None:
        self.index = self.int32()
        self.code = self.int16()
        self.skip(_INT64_BYTES)  # base offset
        if self.version >= APPEND_TIME_SINCE:
            self.skip(_INT64_BYTES)
        self.log_start_offset = self.int64() if self.version >= LOG_START_SINCE else _NO_OFFSET
        if self.version >= RECORD_ERRORS_SINCE:
            errors_left = self.count()
            while errors_left > 0:
                self.skip(_INT32_BYTES)
                self.skip_string()
                self.skip_tags()
                errors_left -= 1
            self.skip_string()
        self.skip_tags()


def _count(count: int, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _string(text: str, flexible: bool) -> bytes:
    data = text.encode(errors="backslashreplace")  # names in schemas may contain lone surrogates
    return (unsigned_varint(len(data) + 1) if flexible else _INT16.pack(len(data))) + data


def _nullable_string(text: str | None, flexible: bool) -> bytes:
    if text is None:
        return b"\0" if flexible else _INT16.pack(-1)
    return _string(text, flexible)
