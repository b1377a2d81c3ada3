"""What a partition's records are written by, and what every writer of them shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import TopicPartition as CommittedOffset

from sluicegate.pipeline.jobs.repair.settings import ROOM_BYTES
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.topics import Topics

MOST_RECORDS = 100_000
MOST_BYTES = 64 << 20
"""Of a transaction, as they come from the source."""
_BATCH_BYTES = 1_000_000

Headers = Sequence[tuple[bytes, bytes | None]]


class CannotWrite(Exception):
    """A record cannot be written where it is to go, or that topic is not what it was taken for."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How the records of a partition are written. `group_id` keeps their progress, `largest_batch` is what the topics
    accept (bytes), `topics` say how to connect, `into` names the destination for people. `is_exact`: some records are
    not what librdkafka writes (see `librdkafka_takes`), so the pipeline's own producer writes all of them.
    """

    group_id: str
    largest_batch: int
    codec: str
    topics: Topics
    into: str
    is_exact: bool = False

    @property
    def batch_bytes(self) -> int:
        """The size at which a batch is sent. It is counted before compression, so a batch is never too large."""
        return min(_BATCH_BYTES, self.largest_batch - ROOM_BYTES)


class RecordWriter(Protocol):
    """A producer with a transactional id. Making one fences an earlier producer of the same id, and aborts the
    transaction that it left open.

    Every method may raise KafkaException, TopicTrouble and BrokerUnreachable.
    """

    ends: dict[TopicPartition, int]
    """The offset of the last record that was written to each partition."""

    def begin(self) -> None:
        """Begin a transaction."""

    def write(
        self, to: TopicPartition, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        """Write a record within the transaction; `timestamp` is in ms. Raises CannotWrite."""

    def commit(self, reached: CommittedOffset) -> None:
        """Commit the offset within the transaction, then the transaction."""

    def abort(self) -> None:
        """Abort the transaction. The writer is not used after that."""


def librdkafka_takes(timestamp: int, headers: Headers) -> bool:
    """Return whether librdkafka writes them as they are: it takes a timestamp of 0 for none, and names of headers as C
    strings, which its binding makes of UTF-8.
    """
    return timestamp != 0 and all(_is_text(name) for name, _ in headers)


def _is_text(name: bytes) -> bool:
    try:
        return "\0" not in name.decode()
    except UnicodeDecodeError:
        return False


def transactional_id(of: TopicPartition, group_id: str) -> str:
    """Of the producer that writes a source's partition, whichever writer it is: either resumes after the other."""
    return f"{group_id}.{of.partition}"
