"""Finds, before anything is written, states of a cluster in which no transaction can be committed."""

import time
from collections.abc import Collection
from struct import Struct

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from sluicegate.pipeline.jobs.repair.settings import SECONDS, settings_of
from sluicegate.pipeline.kafka.cluster import KafkaCluster
from sluicegate.pipeline.kafka.connection import BrokerConnection
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.record_writer import TRANSACTION_TIMEOUT_MS, CannotWriteTopic
from sluicegate.protocol.api import ApiKey

_VERSION = 1
_GROUP, _TRANSACTIONAL_ID = 0, 1
_NOT_AVAILABLE = 15
_COORDINATOR_SECONDS = 10.0
_PAUSE_SECONDS = 0.2
_INT16, _AFTER_THROTTLE_TIME = Struct(">h"), 4
_COORDINATORS = {
    _GROUP: ("groups", "__consumer_offsets", "offsets.topic.replication.factor"),
    _TRANSACTIONAL_ID: ("transactions", "__transaction_state", "transaction.state.log.replication.factor"),
}


def transaction_obstacles(topics: Topics, group_id: str) -> list[str]:
    """Return a sentence for each reason why no transaction with progress in the group can be committed.

    Raises BrokerUnreachable.
    """
    with topics.cluster() as cluster:
        missing = [kind for kind in _COORDINATORS if not _has_coordinator(cluster, kind, group_id)]
    found = [
        f"no broker coordinates {what}: their topic {topic} has no leader or cannot be created, which needs as many "
        f"brokers as {setting} states"
        for what, topic, setting in (_COORDINATORS[kind] for kind in missing)
    ]
    longest = _longest_transaction_ms(topics)
    if longest is not None and longest < TRANSACTION_TIMEOUT_MS:
        found.append(
            f"the brokers have transaction.max.timeout.ms={longest}, and reject transactions of up to "
            f"{TRANSACTION_TIMEOUT_MS} ms: set it to at least {TRANSACTION_TIMEOUT_MS}"
        )
    return found


def _has_coordinator(cluster: KafkaCluster, kind: int, name: str) -> bool:
    """Return whether there is a coordinator. A cluster creates the coordinators' topic when it is first needed."""
    encoded = name.encode()
    body = _INT16.pack(len(encoded)) + encoded + bytes([kind])

    def error_code(broker: BrokerConnection) -> int:
        response = broker.send_raw(ApiKey.FIND_COORDINATOR, _VERSION, body)
        return int(_INT16.unpack_from(response, _AFTER_THROTTLE_TIME)[0])

    end = time.monotonic() + _COORDINATOR_SECONDS
    while cluster.ask_any(error_code) == _NOT_AVAILABLE:
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE_SECONDS)  # Kafka does not announce a new coordinator
    return True


def _longest_transaction_ms(topics: Topics) -> int | None:
    """Return the brokers' limit on a transaction's timeout in ms; None if the login may not read it."""
    admin = AdminClient(topics.for_librdkafka)
    try:
        broker = min(admin.list_topics(timeout=SECONDS).brokers)
        (asked,) = admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, str(broker))]).values()
        return int(asked.result(SECONDS)["transaction.max.timeout.ms"].value)
    except KafkaException:
        return None


def replica_obstacles(topics: Topics, names: Collection[str]) -> list[str]:
    """Return a sentence for each existing topic whose brokers reject records because too few replicas are in sync.

    Omits topics with settings that the login may not read. Raises CannotWriteTopic if topics cannot be listed.
    """
    admin = AdminClient(topics.for_librdkafka)
    try:
        known = admin.list_topics(timeout=SECONDS).topics
    except KafkaException as error:
        raise CannotWriteTopic(error.args[0].str()) from error
    found = []
    for name in sorted(known.keys() & set(names)):
        try:
            required = int(settings_of(admin, name).values["min.insync.replicas"])
        except KafkaException:
            continue
        for partition, its in sorted(known[name].partitions.items()):
            if len(its.isrs) < min(required, len(its.replicas)):
                found.append(
                    f"{name}-{partition} has {len(its.isrs)} of {len(its.replicas)} replicas in sync, and its "
                    f"min.insync.replicas is {required}: start the other brokers, or lower it"
                )
                break
    return found
