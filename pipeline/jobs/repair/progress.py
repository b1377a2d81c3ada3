"""How far a repair or a replay has come: a committed offset of a group, within the same transaction as the records.

Its metadata name the plan that was carried out, and how many records have been written by it.
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
class Progress:
    """`reached`: the next offset in the source that has not been written. `records`: how many were written so far, by
    the plan of that id; "" where a commit does not say.
    """

    reached: int
    records: int
    plan_id: str

    def committed(self, of: TopicPartition) -> ClientPartition:
        """To be committed."""
        told = json.dumps({"plan": self.plan_id, "records": self.records})
        return ClientPartition(of.topic, of.partition, self.reached, told)


def group_of(target: str, topic_id: str) -> str:
    """The group whose committed offsets tell how far a repair into a topic has come; one of the same name that is made
    anew has another id, and begins anew.
    """
    return f"sluicegate-repair.{target}.{topic_id}"


@contextmanager
def group(group_id: str, client: Mapping[str, str]) -> Iterator[Consumer]:
    """The group whose offsets tell of progress; nothing is consumed with it."""
    consumer = Consumer({**client, "group.id": group_id})
    try:
        yield consumer
    finally:
        consumer.close()


def progress_in(consumer: Consumer, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Progress]:
    """How far a source's partitions have come, where something has been written. Raises KafkaException."""
    asked = [ClientPartition(of.topic, of.partition) for of in partitions]
    end = time.monotonic() + SECONDS
    while asked:
        try:
            answers = consumer.committed(asked, timeout=SECONDS)
            for found in answers:
                if found.error is not None:
                    raise KafkaException(found.error)  # not to be taken for nothing written yet
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_MOVES or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)  # nothing announces that a coordinator is ready
        else:
            return {
                TopicPartition(found.topic, found.partition): _progress(int(found.offset), found.metadata)
                for found in answers
                if found.offset != OFFSET_INVALID
            }
    return {}


def _progress(reached: int, metadata: str | None) -> Progress:
    told: dict[str, Any] = json.loads(metadata) if metadata else {}
    return Progress(reached, told.get("records", 0), told.get("plan", ""))
