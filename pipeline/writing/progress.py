"""Stores the progress of a repair or a replay as a group's committed offset, in the same transaction as the records.

The offset's metadata contain the plan's id and the number of records that it has written.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from sluicegate.pipeline.kafka.cluster import TopicPartition

SECONDS = 60.0
_PAUSE_SECONDS = 0.2
_COORDINATOR_MOVES = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """The progress in one partition.

    `reached` is the next source offset to write. `records` is the number of records that the plan `plan_id` has
    written. `plan_id` is "" if the commit does not contain it.
    """

    reached: int
    records: int
    plan_id: str

    def committed(self, of: TopicPartition) -> ClientPartition:
        """Return the offset to commit."""
        content = json.dumps({"plan": self.plan_id, "records": self.records})
        return ClientPartition(of.topic, of.partition, self.reached, content)


@contextmanager
def progress_group(group_id: str, client: Mapping[str, str]) -> Iterator[Consumer]:
    """Open the group that stores the progress. It consumes no records."""
    consumer = Consumer({**client, "group.id": group_id})
    try:
        yield consumer
    finally:
        consumer.close()


def progress_in(consumer: Consumer, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, WriteProgress]:
    """Return the progress of the partitions that have any. Raises KafkaException."""
    wanted = [ClientPartition(of.topic, of.partition) for of in partitions]
    end = time.monotonic() + SECONDS
    while wanted:
        try:
            offsets = consumer.committed(wanted, timeout=SECONDS)
            for found in offsets:
                if found.error is not None:
                    raise KafkaException(found.error)  # an error does not mean that there is no progress
            return {
                TopicPartition(found.topic, found.partition): _progress(int(found.offset), found.metadata)
                for found in offsets
                if found.offset != OFFSET_INVALID
            }
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_MOVES or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)  # Kafka does not announce that a coordinator is ready
        except UnicodeDecodeError:  # see `_progress`; the next response will be at a different memory address
            if time.monotonic() > end:
                raise
    return {}


def _progress(reached: int, metadata: str | None) -> WriteProgress:
    """Return the committed progress.

    librdkafka does not mark the end of the metadata, so bytes from its memory may follow.
    """
    content: dict[str, Any] = json.JSONDecoder().raw_decode(metadata)[0] if metadata else {}
    return WriteProgress(reached, content.get("records", 0), content.get("plan", ""))
