"""How far each partition of a dead-letter topic has been replayed, as a repair keeps it: by offsets of a group, which
are committed in the transactions of what was written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sluicegate.pipeline.jobs.repair.progress import Progress, group, progress_in
from sluicegate.pipeline.jobs.repair.record_writer import CannotWrite, Writing
from sluicegate.pipeline.jobs.repair.settings import topic_id_of
from sluicegate.pipeline.jobs.repair.transactions import transactions
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.topics import Topics

KEPT, FOUND = "sluicegate-replay", "sluicegate-replay-found"
"""How groups' names begin: of dead letters, and of what a validation has listed."""


def groups_of(topics: Topics, begins: str = KEPT) -> dict[str, str]:
    """By the topic that is read; one of the same name that is made anew has another group. Raises CannotWrite."""
    admin = AdminClient(topics.for_librdkafka)
    try:
        return {name: f"{begins}.{name}.{topic_id_of(admin, name)}" for name in topics.names}
    except KafkaException as error:
        raise CannotWrite(f"{', '.join(topics.names)}: {error.args[0].str()}") from error


def as_committed(topics: Topics, groups: Mapping[str, str], ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """What is left of the ranges; a replay that is under way is not disturbed. Raises CannotWrite."""
    client = {**topics.for_librdkafka, "isolation.level": "read_uncommitted"}  # it does not wait for open transactions
    found: dict[TopicPartition, Progress] = {}
    try:
        for name, group_id in groups.items():
            with group(group_id, client) as consumer:
                found |= progress_in(consumer, [each.of for each in ranges if each.of.topic == name])
    except KafkaException as error:
        raise CannotWrite(f"{', '.join(groups)}: {error.args[0].str()}") from error
    return _left_of(ranges, {of: progress.reached for of, progress in found.items()})


def as_settled(topics: Topics, groups: Mapping[str, str], ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """What is left of the ranges, once what a run that was killed has begun is committed or aborted; one that is still
    under way is fenced, and ends. Raises CannotWrite.
    """
    reached: dict[TopicPartition, int] = {}
    for each in ranges:
        with transactions(each.of, writing_of(topics, groups, each.of)) as target:
            before = target.before()
            if before is not None:
                reached[each.of] = before.reached
    return _left_of(ranges, reached)


def writing_of(
    topics: Topics,
    groups: Mapping[str, str],
    of: TopicPartition,
    largest_batch: int = 1 << 20,
    is_exact: bool = False,
) -> Writing:
    """How what a partition holds is written; `largest_batch`: what all topics accept that it goes to (bytes)."""
    return Writing(groups[of.topic], largest_batch, "lz4", topics, "where they belong", is_exact)


def _left_of(ranges: Sequence[OffsetRange], reached: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """Also those of which nothing is left."""
    return [replace(each, start=min(each.end, max(each.start, reached.get(each.of, 0)))) for each in ranges]
