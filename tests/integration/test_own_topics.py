"""No client can change the proxies' own topics through a proxy, and the client gets the error that a broker returns."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from sluicegate.protocol.api import APIS
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import create_topic
from tests.oracle.definitions import message_definition, parse_versions
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data
from tests.wire.topic_changes import REQUESTS, SCHEMAS, codes_in

STATE = {"cleanup.policy": "compact"}
KEYS = {api.name: api.key for api in APIS.values()}
# APIs that only brokers use, which include AddPartitionsToTxn from version 4 on. They must not be denied to a broker.
INTER_BROKER = {"WriteTxnMarkers"}
BEFORE_BROKERS = {"AddPartitionsToTxn": 3}
UNAUTHORIZED = {29, 31}


def error_codes_of_request(client: RawClient, name: str, version: int, topic: str) -> set[int]:
    body = SCHEMAS[f"{name}Request"].build(REQUESTS[name](topic), version)
    return {code for code in codes_in(client.call(KEYS[name], version, SCHEMAS[f"{name}Response"], body)) if code}


def proxy_with_state_topic(folder: Path, upstream: str, topic: str) -> ProxyProcess:
    process = ProxyProcess(folder, upstream)
    process.config["state"] = {"topic": topic}
    return process


def test_errors_for_own_topics_equal_a_brokers_authorization_errors(tmp_path: Path) -> None:
    """The proxy may not read the state topic either, so it is not ready, and its configuration names the topics."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    for name in ("kafka", "proxy"):
        (tmp_path / name).mkdir()
    kafka = Kafka(KAFKA_NEW, tmp_path / "kafka", settings=settings)
    process = None
    try:
        kafka.start()
        topic = create_topic(kafka.bootstrap, STATE, partitions=1)
        cluster, allow, deny = (ResourceType.BROKER, "kafka-cluster"), AclPermissionType.ALLOW, AclPermissionType.DENY
        denied = [
            AclBinding(*about, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", right, permission)
            for about, right, permission in (
                (cluster, AclOperation.CLUSTER_ACTION, allow),  # a permission that only brokers have
                ((ResourceType.TOPIC, topic), AclOperation.ALL, deny),
            )
        ]
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.create_acls(denied).values():
            future.result(30)
        process = proxy_with_state_topic(tmp_path / "proxy", kafka.bootstrap, topic).start(ready=False)

        with RawClient(kafka.bootstrap) as direct, RawClient(process.bootstrap) as through:
            for name in sorted(set(REQUESTS) - INTER_BROKER):
                served = parse_versions(message_definition(KAFKA_NEW, f"{name}Request")["validVersions"])
                most = BEFORE_BROKERS.get(name, served.high)
                for version in range(served.low, most + 1):
                    expected = error_codes_of_request(direct, name, version, topic)
                    assert expected <= UNAUTHORIZED, f"{name} v{version}"
                    assert error_codes_of_request(through, name, version, topic) == expected, f"{name} v{version}"
            produced: list[Any] = [
                client.produce(12, [topic_data(topic, (0, batch([Rec(time.time_ns() // 10**6)])))])
                for client in (direct, through)
            ]
        codes = [each["responses"][0]["partition_responses"][0]["error_code"] for each in produced]
        assert codes == [29, 29]
    finally:
        if process is not None:
            process.stop()
        kafka.stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_own_topics_can_only_be_changed_directly_at_the_cluster(
    kafka_bootstrap: str, tmp_path: Path, workers: int
) -> None:
    topic, other = (create_topic(kafka_bootstrap, STATE, partitions=1) for _ in range(2))
    direct = AdminClient({"bootstrap.servers": kafka_bootstrap})
    process = proxy_with_state_topic(tmp_path, kafka_bootstrap, topic)
    process.config["workers"] = workers
    try:
        process.start()
        through = AdminClient({"bootstrap.servers": process.bootstrap})
        setting = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[setting])
        attempts: list[Callable[[], Any]] = [
            lambda: through.delete_topics([topic])[topic].result(30),
            lambda: through.create_partitions([NewPartitions(topic, 3)])[topic].result(30),
            lambda: through.incremental_alter_configs([resource])[resource].result(30),
            lambda: next(iter(through.delete_records([TopicPartition(topic, 0, 0)]).values())).result(30),
            lambda: produce_record(process.bootstrap, topic),
        ]
        for attempt in attempts:
            with pytest.raises(KafkaException) as refused:
                attempt()
            assert refused.value.args[0].name() == "TOPIC_AUTHORIZATION_FAILED"
        with pytest.raises(KafkaException):
            produce_in_transaction(process.bootstrap, topic)

        line = process.wait_for_line("AddPartitionsToTxn")
        assert "change of a state topic refused" in line
        described = direct.describe_topics(TopicCollection([topic]))[topic].result(30)
        assert len(described.partitions) == 1
        end = {TopicPartition(topic, 0): OffsetSpec.latest()}
        assert next(iter(direct.list_offsets(end).values())).result(30).offset == 0  # without control records
        found = direct.describe_configs([resource])[resource].result(30)
        assert found["cleanup.policy"].value == "compact"
        through.delete_topics([other])[other].result(30)
    finally:
        process.stop()


def produce_record(bootstrap: str, topic: str) -> None:
    """Produce a record. Raises KafkaException with the error of its delivery."""
    errors_of: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"{}", b"suspension/*", on_delivery=lambda error, _: errors_of.append(error))
    assert producer.flush(30) == 0
    if errors_of[0] is not None:
        raise KafkaException(errors_of[0])


def produce_in_transaction(bootstrap: str, topic: str) -> None:
    """Produce a record in a transaction. Raises KafkaException."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"of-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"{}", b"suspension/*")
    producer.commit_transaction(30)
