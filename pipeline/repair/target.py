"""The clean topic: made like the polluted one, or checked before anything is written to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.pipeline.kafka.cluster import TopicTrouble
from sluicegate.pipeline.repair.obstacles import what_is_gone
from sluicegate.pipeline.repair.plan import PartitionPlan, Plan
from sluicegate.pipeline.repair.progress import group, group_of, progress_in
from sluicegate.pipeline.repair.settings import SECONDS, TopicSettings, settings_of, topic_id_of, until_known
from sluicegate.pipeline.repair.transactions import CannotWrite
from sluicegate.pipeline.topics import Topics
from sluicegate.protocol.messages.list_offsets import EARLIEST, LATEST


@dataclass(frozen=True, slots=True)
class Target:
    """A clean topic: the group that keeps its repair's progress, and the bytes of the largest batch that it takes."""

    group_id: str
    largest_message: int


def target_settings(topics: Topics, targets: Mapping[str, str]) -> dict[str, TopicSettings]:
    """Of those clean topics that are there already. Raises CannotWrite."""
    admin = AdminClient(topics.for_librdkafka)
    try:
        there = admin.list_topics(timeout=SECONDS).topics
        return {to: settings_of(admin, to) for to in targets.values() if to in there}
    except KafkaException as error:
        raise CannotWrite(error.args[0].str()) from error


def source_settings(topics: Topics) -> dict[str, TopicSettings]:
    """Of the topics to be repaired. Raises CannotWrite."""
    admin = AdminClient(topics.for_librdkafka)
    try:
        return {name: settings_of(admin, name) for name in topics.names}
    except KafkaException as error:
        raise CannotWrite(f"{', '.join(topics.names)}: {error.args[0].str()}") from error


def prepare(plan: Plan, topics: Topics) -> dict[str, Target]:
    """Make the clean topics that are missing. Raises CannotWrite when one holds what this plan has not written."""
    client = topics.for_librdkafka
    admin = AdminClient(client)
    try:
        there = admin.list_topics(timeout=SECONDS).topics
        for source, to in plan.targets.items():
            metadata = until_known(partial(_metadata, admin, source))
            if to not in there:
                _create(admin, plan, source, to, metadata)
            elif len(there[to].partitions) != len(metadata.partitions):
                raise CannotWrite(
                    f"{to} has {len(there[to].partitions)} partitions and {source} {len(metadata.partitions)}; "
                    "the order of records would change"
                )
        found = {to: _target(admin, to) for to in plan.targets.values()}
        reached: dict[str, int] = {}
        for source, to in plan.targets.items():
            reached |= _checked_ours(plan, topics, client, source, to, found[to].group_id)
        gone = what_is_gone(plan, log_starts(plan, topics), reached)
        if gone:
            way = "with another --out and --to" if reached else "by a dry run"
            raise CannotWrite(f"the plan went stale: {'; '.join(gone)}. Make a new one, {way}")
    except KafkaException as error:
        raise CannotWrite(error.args[0].str()) from error
    return found


def _metadata(admin: AdminClient, topic: str) -> Any:
    found = admin.list_topics(topic, timeout=SECONDS).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return found


def _target(admin: AdminClient, to: str) -> Target:
    return Target(group_of(to, topic_id_of(admin, to)), settings_of(admin, to).largest_message)


def _create(admin: AdminClient, plan: Plan, source: str, to: str, metadata: Any) -> None:
    largest = max((each.contents.largest for each in plan.partitions if each.to == to), default=0)
    settings = settings_of(admin, source).for_clean(plan.rules.retention, largest)
    replicas = len(metadata.partitions[0].replicas)
    (made,) = admin.create_topics([NewTopic(to, len(metadata.partitions), replicas, config=settings)]).values()
    try:
        made.result(SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # by a run that was killed a moment ago
            raise


def log_starts(plan: Plan, topics: Topics) -> dict[str, int]:
    """Where the plan's partitions begin now, by their names."""
    cluster = topics.cluster()
    try:
        found = cluster.offsets([each.source.of for each in plan.partitions], EARLIEST, committed=True)
    finally:
        cluster.close()
    return {str(of): offset for of, offset in found.items()}


def _checked_ours(
    plan: Plan, topics: Topics, client: Mapping[str, str], source: str, to: str, group_id: str
) -> dict[str, int]:
    """How far each partition of a source has come, by its name, where something has been written."""
    mine: list[PartitionPlan] = [each for each in plan.partitions if each.source.of.topic == source]
    with group(group_id, client) as consumer:
        begun = progress_in(consumer, [each.source.of for each in mine])
    if any(found.plan_id != plan.plan_id for found in begun.values()):
        raise CannotWrite(
            f"{to} was begun by another plan, and two in one topic would mix: go on in that one's --out, or name "
            f"another topic by --to, or delete {to}"
        )
    if not begun and _holds_records(topics, to):
        raise CannotWrite(f"{to} holds records that no repair has written; name another topic by --to, or delete it")
    return {str(of): found.reached for of, found in begun.items()}


def _holds_records(topics: Topics, to: str) -> bool:
    cluster = Topics(topics.bootstrap, (to,), topics.settings).cluster()
    try:
        partitions = cluster.partitions([to])
        begins, ends = (cluster.offsets(partitions, at, committed=True) for at in (EARLIEST, LATEST))
    except TopicTrouble as error:
        raise CannotWrite(str(error)) from error
    finally:
        cluster.close()
    return any(begins[p] < ends[p] for p in partitions)
