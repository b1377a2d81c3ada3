"""The walk over a Produce request, versions 0 to 13: where each partition's records lie, without a copy.

Held to the construct schema `protocol.messages.produce.REQUEST` by a property test. `ProduceRequest.with_records`
writes the same request with other records in some of its partitions, every other byte as it came. Compiled with the
types in produce_request.pxd where a C compiler was at hand: there no index is checked, so `_need` is asked before each.
"""

from collections.abc import Mapping
from struct import Struct

from protocol.errors import MalformedMessage
from protocol.varint import unsigned_varint

_INT32 = Struct(">i")
_UUID_BYTES = 16
_INT16_BYTES = 2
_INT32_BYTES = 4
_MAX_VARINT_SHIFT = 28
# Named, because Cython takes a literal this large for an object.
_SIGN_16 = 0x8000
_SIGN_32 = 0x8000_0000

FLEXIBLE_SINCE = 9
TRANSACTIONAL_ID_SINCE = 3
TOPIC_ID_SINCE = 13


class PartitionData:
    """One partition's entry starts at frame[entry_at], its records are frame[records_at:records_end].

    `records_at` is -1 where the records are null.
    """

    def __init__(self, index: int, entry_at: int, records_at: int, records_end: int) -> None:
        self.index = index
        self.entry_at = entry_at
        self.records_at = records_at
        self.records_end = records_end


class TopicData:
    """One topic's partitions: `name` up to version 12, `topic_id` (16 bytes) from 13."""

    def __init__(self, name: str | None, topic_id: bytes | None, partitions: list[PartitionData]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class ProduceRequest:
    """A walked request: positions are offsets in `frame` (without size prefix)."""

    def __init__(
        self, frame: bytearray, version: int, transactional_id: str | None, acks: int, topics: list[TopicData]
    ) -> None:
        self.frame = frame
        self.version = version
        self.transactional_id = transactional_id
        self.acks = acks
        self.topics = topics
        self._view = memoryview(frame)

    def records(self, topic: int, partition: int) -> memoryview | None:
        """The records of a partition, by its place in the request; None where they are null."""
        found = self.topics[topic]
        data = found.partitions[partition]
        return None if data.records_at < 0 else self._view[data.records_at : data.records_end]

    def with_records(self, replacements: Mapping[tuple[int, int], bytes]) -> list[bytes | memoryview]:
        """The request's parts with other records at some places (topic position, partition position)."""
        view = self._view
        parts: list[bytes | memoryview] = []
        copied_to = 0
        for (t, p), records in sorted(replacements.items()):
            data = self.topics[t].partitions[p]
            parts += (view[copied_to : data.entry_at + _INT32_BYTES], self._records_size(len(records)), records)
            copied_to = data.records_end
        return [*parts, view[copied_to:]]

    def _records_size(self, size: int) -> bytes:
        return unsigned_varint(size + 1) if self.version >= FLEXIBLE_SINCE else _INT32.pack(size)


def walk_produce_request(frame: bytearray, version: int, body_at: int) -> ProduceRequest:
    """Walk a gathered Produce frame from `body_at`. Raises MalformedMessage when it does not follow the schema."""
    try:
        return _Walk(frame, version, body_at).request()
    except MalformedMessage as error:
        raise MalformedMessage(f"Produce v{version}: {error}") from error


class _Walk:
    def __init__(self, frame: bytearray, version: int, position: int) -> None:
        self.frame = frame
        self.version = version
        self.flexible = version >= FLEXIBLE_SINCE
        self.position = position
        self.end = len(frame)

    def request(self) -> ProduceRequest:
        transactional_id = self.string(True) if self.version >= TRANSACTIONAL_ID_SINCE else None
        acks = self.int16()
        self.int32()  # timeout
        topics: list[TopicData] = []
        left = self.array_count()
        while left > 0:
            topics.append(self.topic())
            left -= 1
        self.skip_tags()
        if self.position != self.end:
            raise MalformedMessage(f"{self.end - self.position} bytes behind the request's end")
        return ProduceRequest(self.frame, self.version, transactional_id, acks, topics)

    def topic(self) -> TopicData:
        name = topic_id = None
        if self.version >= TOPIC_ID_SINCE:
            self.need(_UUID_BYTES)
            topic_id = bytes(self.frame[self.position : self.position + _UUID_BYTES])
            self.position += _UUID_BYTES
        else:
            name = self.string(False)
        partitions: list[PartitionData] = []
        left = self.array_count()
        while left > 0:
            partitions.append(self.partition())
            left -= 1
        self.skip_tags()
        return TopicData(name, topic_id, partitions)

    def partition(self) -> PartitionData:
        entry_at = self.position
        index = self.int32()
        length = self.length(_INT32_BYTES)
        records_at = self.position if length >= 0 else -1
        self.position += max(length, 0)
        records_end = self.position
        self.skip_tags()
        return PartitionData(index, entry_at, records_at, records_end)

    def need(self, size: int) -> None:
        if size > self.end - self.position:
            raise MalformedMessage("the request ends too early")

    def int16(self) -> int:
        self.need(_INT16_BYTES)
        value = self.frame[self.position] << 8 | self.frame[self.position + 1]
        self.position += _INT16_BYTES
        return (value ^ _SIGN_16) - _SIGN_16

    def int32(self) -> int:
        self.need(_INT32_BYTES)
        at = self.position
        value = self.frame[at]  # first into a wide variable: a C int would overflow
        value = value << 24 | self.frame[at + 1] << 16 | self.frame[at + 2] << 8 | self.frame[at + 3]
        self.position += _INT32_BYTES
        return (value ^ _SIGN_32) - _SIGN_32

    def unsigned_varint(self) -> int:
        value = 0
        shift = 0
        while True:
            if self.position >= self.end:
                raise MalformedMessage("the message ends within a varint")
            byte = self.frame[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > _MAX_VARINT_SHIFT:
                raise MalformedMessage("a varint is longer than five bytes")

    def length(self, fixed_bytes: int) -> int:
        """A length or count; -1 is null. `fixed_bytes`: its size in versions that have no varints."""
        if self.flexible:
            length = self.unsigned_varint() - 1
        elif fixed_bytes == _INT16_BYTES:
            length = self.int16()
        else:
            length = self.int32()
        if length < -1 or length > self.end - self.position:
            raise MalformedMessage(f"a length of {length} runs over the end of the request")
        return length

    def array_count(self) -> int:
        count = self.length(_INT32_BYTES)
        if count < 0:
            raise MalformedMessage("an array is null")
        return count

    def string(self, nullable: bool) -> str | None:
        length = self.length(_INT16_BYTES)
        if length < 0:
            if not nullable:
                raise MalformedMessage("a topic name is null")
            return None
        start = self.position
        self.position += length
        try:
            return self.frame[start : self.position].decode()
        except UnicodeDecodeError as error:
            raise MalformedMessage("a name is not UTF-8") from error

    def skip_tags(self) -> None:
        left = self.unsigned_varint() if self.flexible else 0
        while left > 0:
            self.unsigned_varint()
            size = self.unsigned_varint()
            if size > self.end - self.position:
                raise MalformedMessage("a tagged field runs over the end of the message")
            self.position += size
            left -= 1
