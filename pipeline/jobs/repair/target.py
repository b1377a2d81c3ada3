"""Creates a clean topic with the polluted topic's settings, or checks an existing one before anything is written."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.pipeline.jobs.repair.obstacles import missing_offsets
from sluicegate.pipeline.jobs.repair.plan import RepairPartition, RepairPlan
from sluicegate.pipeline.jobs.repair.settings import (
    SECONDS,
    RepairTopicSettings,
    retry_until_known,
    settings_of,
    topic_id_of,
)
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.progress import progress_group, progress_in
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from sluicegate.protocol.messages.fetch import EARLIEST

_PAUSE_SECONDS = 0.2
_NO_RIGHT = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_WHAT_IS_COMMITTED = {"isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}


@dataclass(frozen=True, slots=True)
class CleanTopic:
    """A clean topic, the group that stores its repair's progress, and its maximum batch size in bytes."""

    group_id: str
    largest_message: int


def target_settings(topics: Topics, targets: Mapping[str, str]) -> dict[str, RepairTopicSettings]:
    """Return the settings of existing clean topics. Raises CannotWriteTopic."""
    admin = AdminClient(topics.for_librdkafka)
    try:
        there = admin.list_topics(timeout=SECONDS).topics
        return {to: settings_of(admin, to) for to in targets.values() if to in there}
    except KafkaException as error:
        raise CannotWriteTopic(error.args[0].str()) from error


def source_settings(topics: Topics) -> dict[str, RepairTopicSettings]:
    """Return the settings of the source topics. Raises CannotWriteTopic."""
    admin = AdminClient(topics.for_librdkafka)
    try:
        return {name: settings_of(admin, name) for name in topics.names}
    except KafkaException as error:
        raise CannotWriteTopic(f"{', '.join(topics.names)}: {error.args[0].str()}") from error


def target_obstacles(plan: RepairPlan, topics: Topics) -> list[str]:
    """Return a sentence for each obstacle that would stop `create_clean_topics`.

    Obstacles are clean topics that cannot be created (brokers check this without creating anything), have a different
    number of partitions, collide with each other, or were written by others. Missing ACLs are not included; see
    `required_acls.missing_acl_sentences`.
    """
    client = topics.for_librdkafka
    admin = AdminClient(client)
    found = _collisions(plan.targets.values())
    try:
        there = admin.list_topics(timeout=SECONDS).topics
    except KafkaException as error:
        raise CannotWriteTopic(error.args[0].str()) from error
    for source, to in plan.targets.items():
        try:
            metadata = retry_until_known(partial(_metadata, admin, source))
            if to not in there:
                _create(admin, plan, source, to, metadata, only_validate=True)
                continue
            found += _other_partitions(to, there[to], source, metadata)
            progress = _checked_ours(plan, client, source, to, _target(admin, to).group_id)
            found += [progress] if isinstance(progress, str) else []
        except KafkaException as error:
            if error.args[0].code() not in _NO_RIGHT:
                found.append(f"{to} cannot be used: {error.args[0].str()}; use another --to, or change the topic")
    return found


def _collisions(targets: Iterable[str]) -> list[str]:
    """Return clean topics of which only one can be created, because Kafka's metrics treat . and _ in names as equal."""
    by_name: dict[str, list[str]] = {}
    for to in targets:
        by_name.setdefault(to.replace(".", "_"), []).append(to)
    return [
        f"{' and '.join(sorted(its))} collide, because Kafka's metrics have the same name for . and _: repair their "
        "sources separately, with another --to"
        for its in by_name.values()
        if len(its) > 1
    ]


def _other_partitions(to: str, there: Any, source: str, metadata: Any) -> list[str]:
    if len(there.partitions) == len(metadata.partitions):
        return []
    return [
        f"{to} has {len(there.partitions)} partitions and {source} {len(metadata.partitions)}; the order of records "
        "would change: use another --to, or delete it"
    ]


def create_clean_topics(plan: RepairPlan, topics: Topics) -> dict[str, CleanTopic]:
    """Create missing clean topics. Raises CannotWriteTopic if a topic contains records that this plan did not write."""
    client = topics.for_librdkafka
    admin = AdminClient(client)
    try:
        there = admin.list_topics(timeout=SECONDS).topics
        for source, to in plan.targets.items():
            metadata = retry_until_known(partial(_metadata, admin, source))
            if to not in there:
                _create(admin, plan, source, to, metadata)
            elif other := _other_partitions(to, there[to], source, metadata):
                raise CannotWriteTopic(other[0])
        found = {to: _target(admin, to) for to in plan.targets.values()}
        reached: dict[str, int] = {}
        for source, to in plan.targets.items():
            progress = _checked_ours(plan, client, source, to, found[to].group_id)
            if isinstance(progress, str):
                raise CannotWriteTopic(progress)
            reached |= progress
        missing = missing_offsets(plan, log_starts(plan, topics), reached)
        if missing:
            way = "with another --out and --to" if reached else "by a dry run"
            raise CannotWriteTopic(f"the plan is outdated: {'; '.join(missing)}. Make a new one, {way}")
    except KafkaException as error:
        raise CannotWriteTopic(error.args[0].str()) from error
    return found


def _metadata(client: AdminClient | Consumer, topic: str) -> Any:
    found = client.list_topics(topic, timeout=SECONDS).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return found


def _target(admin: AdminClient, to: str) -> CleanTopic:
    return CleanTopic(group_of(to, topic_id_of(admin, to)), settings_of(admin, to).largest_message)


def group_of(target: str, topic_id: str) -> str:
    """Return the group that stores a repair's progress.

    A topic that is created again has a new id, and therefore a new group.
    """
    return f"sluicegate-repair.{target}.{topic_id}"


def _create(
    admin: AdminClient, plan: RepairPlan, source: str, to: str, metadata: Any, *, only_validate: bool = False
) -> None:
    """Create a clean topic, or only check whether it could be created. Raises KafkaException."""
    largest = max((each.contents.largest for each in plan.partitions if each.to == to), default=0)
    settings = settings_of(admin, source).for_clean(plan.rules.retention, largest)
    replicas = len(metadata.partitions[0].replicas)
    topic = NewTopic(to, len(metadata.partitions), replicas, config=settings)
    (made,) = admin.create_topics([topic], validate_only=only_validate).values()
    try:
        made.result(SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # a run that has just been killed created the topic
            raise


def log_starts(plan: RepairPlan, topics: Topics) -> dict[str, int]:
    """Return the current log start offsets of the plan's partitions, by partition name."""
    with topics.cluster() as cluster:
        found = cluster.offsets([each.source.of for each in plan.partitions], EARLIEST, committed=True)
    return {str(of): offset for of, offset in found.items()}


def _checked_ours(
    plan: RepairPlan, client: Mapping[str, str], source: str, to: str, group_id: str
) -> dict[str, int] | str:
    """Return the progress of a source's partitions by partition name.

    If the clean topic does not belong to this plan, return the reason instead.
    """
    mine: list[RepairPartition] = [each for each in plan.partitions if each.source.of.topic == source]
    with progress_group(group_id, client) as consumer:
        begun = progress_in(consumer, [each.source.of for each in mine])
    if any(found.plan_id != plan.plan_id for found in begun.values()):
        return (
            f"{to} was begun by another plan, and two plans must not share a topic: continue in that plan's --out, use "
            f"another --to, or delete {to}"
        )
    if not begun and _holds_records(client, to, group_id):
        return f"{to} has records that no repair wrote; use another --to, or delete it"
    return {str(of): found.reached for of, found in begun.items()}


def _holds_records(client: Mapping[str, str], to: str, group_id: str) -> bool:
    """Return whether a reader would find records.

    Offsets do not show this, because a run that ended before its first commit has also used offsets.
    """
    consumer = Consumer({**client, "group.id": group_id, **_WHAT_IS_COMMITTED})
    try:
        waited_for = _used(consumer, to)
        consumer.assign(waited_for)
        end = time.monotonic() + SECONDS
        left = {each.partition for each in waited_for}
        while left:
            message = consumer.poll(_PAUSE_SECONDS)
            if message is None:
                if time.monotonic() > end:
                    raise CannotWriteTopic(f"{to} cannot be read: no records arrived for {SECONDS:.0f} s; try again")
                continue
            error = message.error()
            if error is None:
                return True
            if error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
                end = time.monotonic() + SECONDS  # the consumer also fetches aborted records
            elif not error.retriable():
                raise KafkaException(error)
        return False
    finally:
        consumer.close()


def _used(consumer: Consumer, to: str) -> list[ClientPartition]:
    """Return a topic's partitions with used offsets, each positioned at its beginning."""
    places = {p: ClientPartition(to, p) for p in retry_until_known(partial(_metadata, consumer, to)).partitions}
    ask = consumer.get_watermark_offsets
    bounds = {p: retry_until_known(partial(ask, place, SECONDS)) for p, place in places.items()}
    return [ClientPartition(to, p, begin) for p, (begin, end) in bounds.items() if begin < end]
