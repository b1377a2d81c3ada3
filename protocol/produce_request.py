"""The walk over a Produce request, versions 0 to 13: where each partition's records lie, without a copy.

Held to the construct schema `protocol.messages.produce.REQUEST` by a property test. `ProduceRequest.with_records`
writes the same request with other records in some of its partitions, every other byte as it came.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError

from protocol.errors import MalformedMessage
from protocol.headers import skip_tagged_fields
from protocol.varint import read_unsigned_varint, unsigned_varint

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_ACKS_AND_TIMEOUT = Struct(">hi")
_UUID_BYTES = 16

FLEXIBLE_SINCE = 9
TRANSACTIONAL_ID_SINCE = 3
TOPIC_ID_SINCE = 13


@dataclass(slots=True)
class PartitionData:
    """One partition's entry starts at frame[entry_at], its records are frame[records_at:records_end].

    `records_at` is -1 where the records are null.
    """

    index: int
    entry_at: int
    records_at: int
    records_end: int


@dataclass(slots=True)
class TopicData:
    """One topic's partitions: `name` up to version 12, `topic_id` (16 bytes) from 13."""

    name: str | None
    topic_id: bytes | None
    partitions: list[PartitionData]


@dataclass(slots=True)
class ProduceRequest:
    """A walked request: positions are offsets in `frame` (without size prefix)."""

    frame: bytearray
    version: int
    transactional_id: str | None
    acks: int
    topics: list[TopicData]

    def records(self, topic: int, partition: int) -> memoryview | None:
        """The records of a partition, by its place in the request; None where they are null."""
        data = self.topics[topic].partitions[partition]
        return None if data.records_at < 0 else memoryview(self.frame)[data.records_at : data.records_end]

    def with_records(self, replacements: Mapping[tuple[int, int], bytes]) -> list[bytes | memoryview]:
        """The request's parts with other records at some places (topic position, partition position)."""
        view = memoryview(self.frame)
        parts: list[bytes | memoryview] = []
        copied_to = 0
        for (t, p), records in sorted(replacements.items()):
            data = self.topics[t].partitions[p]
            parts += (view[copied_to : data.entry_at + _INT32.size], self._records_size(len(records)), records)
            copied_to = data.records_end
        return [*parts, view[copied_to:]]

    def _records_size(self, size: int) -> bytes:
        return unsigned_varint(size + 1) if self.version >= FLEXIBLE_SINCE else _INT32.pack(size)


def walk_produce_request(frame: bytearray, version: int, body_at: int) -> ProduceRequest:
    """Walk a gathered Produce frame from `body_at`. Raises MalformedMessage when it does not follow the schema."""
    try:
        return _Walk(frame, version, body_at).request()
    except (StructError, IndexError) as error:
        raise MalformedMessage(f"Produce v{version}: the request ends too early") from error
    except MalformedMessage as error:
        raise MalformedMessage(f"Produce v{version}: {error}") from error


class _Walk:
    def __init__(self, frame: bytearray, version: int, position: int) -> None:
        self._frame = frame
        self._version = version
        self._flexible = version >= FLEXIBLE_SINCE
        self._position = position

    def request(self) -> ProduceRequest:
        transactional_id = self._string(nullable=True) if self._version >= TRANSACTIONAL_ID_SINCE else None
        acks, _timeout_ms = _ACKS_AND_TIMEOUT.unpack_from(self._frame, self._position)
        self._position += _ACKS_AND_TIMEOUT.size
        topics = [self._topic() for _ in range(self._array_count())]
        self._skip_tags()
        if self._position != len(self._frame):
            raise MalformedMessage(f"{len(self._frame) - self._position} bytes behind the request's end")
        return ProduceRequest(self._frame, self._version, transactional_id, acks, topics)

    def _topic(self) -> TopicData:
        name = topic_id = None
        if self._version >= TOPIC_ID_SINCE:
            topic_id = bytes(self._take(_UUID_BYTES))
        else:
            name = self._string(nullable=False)
        partitions = [self._partition() for _ in range(self._array_count())]
        self._skip_tags()
        return TopicData(name, topic_id, partitions)

    def _partition(self) -> PartitionData:
        entry_at = self._position
        (index,) = _INT32.unpack_from(self._frame, entry_at)
        self._position += _INT32.size
        length = self._length(_INT32)
        records_at = self._position if length >= 0 else -1
        self._position += max(length, 0)
        records_end = self._position
        self._skip_tags()
        return PartitionData(index, entry_at, records_at, records_end)

    def _length(self, fixed: Struct) -> int:
        """A length or count; -1 is null."""
        if self._flexible:
            biased, self._position = read_unsigned_varint(self._frame, self._position)
            length = biased - 1
        else:
            (length,) = fixed.unpack_from(self._frame, self._position)
            self._position += fixed.size
        if length < -1 or length > len(self._frame) - self._position:
            raise MalformedMessage(f"a length of {length} runs over the end of the request")
        return length

    def _array_count(self) -> int:
        count = self._length(_INT32)
        if count < 0:
            raise MalformedMessage("an array is null")
        return count

    def _string(self, nullable: bool) -> str | None:
        length = self._length(_INT16)
        if length < 0:
            if not nullable:
                raise MalformedMessage("a topic name is null")
            return None
        try:
            return bytes(self._take(length)).decode()
        except UnicodeDecodeError as error:
            raise MalformedMessage("a name is not UTF-8") from error

    def _take(self, length: int) -> bytearray:
        end = self._position + length
        if end > len(self._frame):
            raise MalformedMessage("the request ends too early")
        taken_at, self._position = self._position, end
        return self._frame[taken_at:end]

    def _skip_tags(self) -> None:
        if self._flexible:
            self._position = skip_tagged_fields(self._frame, self._position)
