"""The clean topic: made like the polluted one, or checked before anything is written to it."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # type: ignore[attr-defined]

from pipeline.kafka.cluster import TopicTrouble
from pipeline.repair.plan import PartitionPlan, Plan
from pipeline.repair.writing import CannotWrite, committed_offset, group_of
from pipeline.topics import Topics
from protocol.messages.list_offsets import EARLIEST, LATEST

_SECONDS = 30
_OF_TOPIC = "DYNAMIC_TOPIC_CONFIG"
_NOT_CARRIED = frozenset({"message.timestamp.type"})  # a clean topic keeps the times that it is given


def client_of(topics: Topics) -> dict[str, Any]:
    """Librdkafka's settings."""
    return {"bootstrap.servers": topics.bootstrap, **topics.settings}


def prepare(plan: Plan, topics: Topics) -> dict[str, str]:
    """Make the clean topics that are missing; returns for each the group that keeps its repair's progress.

    Raises CannotWrite when one holds what no repair has written.
    """
    client = client_of(topics)
    admin = AdminClient(client)
    try:
        there = admin.list_topics(timeout=_SECONDS).topics
        for source, to in plan.targets.items():
            if to not in there:
                _create(admin, source, to, there[source])
            elif len(there[to].partitions) != len(there[source].partitions):
                raise CannotWrite(
                    f"{to} has {len(there[to].partitions)} partitions and {source} {len(there[source].partitions)}; "
                    "the order of records would change"
                )
        groups = _groups(admin, list(plan.targets.values()))
        for source, to in plan.targets.items():
            _check_ours(plan, topics, client, source, to, groups[to])
    except KafkaException as error:
        raise CannotWrite(error.args[0].str()) from error
    return groups


def _groups(admin: AdminClient, targets: list[str]) -> dict[str, str]:
    found = admin.describe_topics(TopicCollection(targets))
    return {to: group_of(to, str(future.result(_SECONDS).topic_id)) for to, future in found.items()}


def _create(admin: AdminClient, source: str, to: str, metadata: object) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, source)
    (answer,) = admin.describe_configs([resource]).values()
    settings = {
        name: entry.value
        for name, entry in answer.result(_SECONDS).items()
        if entry.source == 1 and not entry.is_sensitive and name not in _NOT_CARRIED
    }
    partitions = metadata.partitions  # type: ignore[attr-defined]
    replicas = len(partitions[0].replicas)
    (made,) = admin.create_topics([NewTopic(to, len(partitions), replicas, config=settings)]).values()
    made.result(_SECONDS)


def _check_ours(plan: Plan, topics: Topics, client: Mapping[str, str], source: str, to: str, group_id: str) -> None:
    mine: list[PartitionPlan] = [each for each in plan.partitions if each.source.of.topic == source]
    if any(committed_offset(each, group_id, client) >= 0 for each in mine):
        return
    clean = Topics(topics.bootstrap, (to,), topics.settings)
    cluster = clean.cluster()
    try:
        partitions = cluster.partitions(clean.names)
        begins, ends = (cluster.offsets(partitions, at, committed=True) for at in (EARLIEST, LATEST))
    except TopicTrouble as error:
        raise CannotWrite(str(error)) from error
    finally:
        cluster.close()
    if any(begins[p] < ends[p] for p in partitions):
        raise CannotWrite(f"{to} holds records that no repair has written; name another topic by --to, or delete it")
