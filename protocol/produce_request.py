"""Walks a Produce request, versions 0 to 13, and finds each partition's records without copying them.

A property test compares it with the schema `sluicegate.protocol.messages.produce.PRODUCE_REQUEST`.
`ProduceRequest.with_records` replaces the records of some partitions; all other bytes stay unchanged. Compiled with the
types in produce_request.pxd if a C compiler is installed.
"""

from collections.abc import Mapping
from struct import Struct

from sluicegate.protocol.errors import MalformedMessage, RequestTooLarge
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE, ONE_BATCH_SINCE, TOPIC_ID_SINCE
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS, Walk

_INT32 = Struct(">i")
_UUID_BYTES = 16
_INT32_BYTES = 4
# No topic name has more than 249 characters. The broker rejects a single longer name; ten thousand are rejected here.
_NAME_BYTES_OF_A_TOPIC = 256
_NAME_BYTES = 65_536


class PartitionData:
    """A partition. Its entry starts at frame[entry_at], and its records are frame[records_at:records_end].

    `records_at` is -1 if the records are null.
    """

    def __init__(self, index: int, entry_at: int, records_at: int, records_end: int) -> None:
        self.index = index
        self.entry_at = entry_at
        self.records_at = records_at
        self.records_end = records_end


class TopicData:
    """One topic's partitions. `name` is set up to version 12, `topic_id` (16 bytes) from version 13 on."""

    def __init__(self, name: str | None, topic_id: bytes | None, partitions: list[PartitionData]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions

    def name_by(self, names: Mapping[bytes, str]) -> str | None:
        """Return the topic's name.

        If the request contains only the topic id, looks the name up in `names`, and returns None if it is not there.
        """
        return self.name if self.name is not None else names.get(self.topic_id or b"")


class ProduceRequest:
    """A walked request. Positions are offsets in `frame`, which has no size prefix."""

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
        """Return a partition's records by its position in the request, or None if they are null."""
        found = self.topics[topic]
        data = found.partitions[partition]
        return None if data.records_at < 0 else self._view[data.records_at : data.records_end]

    def with_records(self, replacements: Mapping[tuple[int, int], bytes]) -> list[bytes | memoryview]:
        """Return the request, in parts, with other records for some (topic position, partition position)."""
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


def walk_produce_request(frame: bytearray, version: int, body_at: int, max_partitions: int) -> ProduceRequest:
    """Walk a gathered Produce frame from `body_at`. `max_partitions` limits topics and partitions together.

    Raises MalformedMessage if the frame does not follow the schema, and RequestTooLarge for more than `max_partitions`.
    """
    walk = _Walk()
    walk.begin(frame, version, version >= FLEXIBLE_SINCE, body_at, max_partitions, MAX_TAGGED_FIELDS)
    walk.name_bytes_left = _NAME_BYTES + max_partitions * _NAME_BYTES_OF_A_TOPIC
    try:
        return walk.request(frame)
    except MalformedMessage as error:
        raise MalformedMessage(f"Produce v{version}: {error}") from error
    except _OverBound as error:
        raise RequestTooLarge(
            f"Produce v{version}: {error} limits.max_request_partitions ({max_partitions}) allows for one request:"
            " raise it, or let the producer send less at once"
        ) from error


class _OverBound(Exception):
    """Raised if a request exceeds a limit. The message is a sentence that the name of the limit completes."""


class _Walk(Walk):
    name_bytes_left: int

    def request(self, frame: bytearray) -> ProduceRequest:
        transactional_id = self.string() if self.version >= ONE_BATCH_SINCE else None
        acks = self.int16()
        self.skip(_INT32_BYTES)  # timeout
        topics: list[TopicData] = []
        left = self.count()
        while left > 0:
            topics.append(self.topic())
            left -= 1
        self.skip_tags()
        self.expect_end()
        return ProduceRequest(frame, self.version, transactional_id, acks, topics)

    def topic(self) -> TopicData:
        name = topic_id = None
        if self.version >= TOPIC_ID_SINCE:
            topic_id = self.bytes_of(_UUID_BYTES)
        else:
            name = self.topic_name()
        partitions: list[PartitionData] = []
        left = self.count()
        while left > 0:
            partitions.append(self.partition())
            left -= 1
        self.skip_tags()
        return TopicData(name, topic_id, partitions)

    def topic_name(self) -> str:
        start = self.position
        name = self.required_string()
        self.name_bytes_left -= self.position - start
        if self.name_bytes_left < 0:
            raise _OverBound("the topics' names take more bytes than")
        return name

    def partition(self) -> PartitionData:
        entry_at = self.position
        index = self.int32()
        length = self.length(_INT32_BYTES)
        records_at = self.position if length >= 0 else -1
        if length > 0:
            self.position += length
        records_end = self.position
        self.skip_tags()
        return PartitionData(index, entry_at, records_at, records_end)

    def reject_count(self, count: int) -> None:
        raise _OverBound(f"{count} more topics or partitions than")
