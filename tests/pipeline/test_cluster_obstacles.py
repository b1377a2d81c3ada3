"""A dry run names states of a cluster in which no transaction can be committed, and then nothing is written."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sluicegate.pipeline import audit, plan_repair, plan_replay, repair, replay
from sluicegate.pipeline.jobs.repair.cluster_obstacles import replica_obstacles, transaction_obstacles
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from tests.broker.eventually import eventually
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.integration.topics import create_topic
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD
from tests.pipeline.polluted import HOUR, UNLIMITED, Polluter
from tests.pipeline.repairs import now_ms
from tests.pipeline.test_repair import topics_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
POLICIES = """
upstream: {{bootstrap: ["{bootstrap}"], topic_settings: false}}
listen: {{bootstrap: "127.0.0.1:19092"}}
topics:
  - {{match: "*", message.timestamp.after.max.ms: 3600000}}
"""
FEW_BROKERS = {"transaction.state.log.replication.factor": "3"}
SHORT = {"transaction.max.timeout.ms": "30000"}
NO_COORDINATOR = "no broker coordinates transactions: their topic __transaction_state has no leader or cannot"
TOO_SHORT = "the brokers have transaction.max.timeout.ms=30000, and reject transactions of up to 60000 ms"


@pytest.fixture(scope="module", params=[KAFKA_NEW, KAFKA_OLD])
def incapable_kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a cluster with one broker that can only create the transactions' topic with three replicas."""
    yield from run_kafka(Kafka(request.param, tmp_path_factory.mktemp("cluster"), settings=FEW_BROKERS | SHORT))


@pytest.fixture(scope="module")
def degraded_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a broker that is also the controller, and a second broker, which a test may kill."""
    fast = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    for kafka in run_kafka(Kafka(KAFKA_NEW, tmp_path_factory.mktemp("cluster"), settings=fast)):
        kafka.add_node()
        yield kafka


def test_a_missing_coordinator_and_a_low_timeout_are_obstacles(incapable_kafka: Kafka) -> None:
    bootstrap = incapable_kafka.bootstrap
    topic = create_topic(bootstrap, UNLIMITED, 1)
    with pytest.raises(KafkaException):
        Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"}).init_transactions(10)

    found = transaction_obstacles(Topics(bootstrap, (topic,)), "group")

    assert [each.startswith((NO_COORDINATOR, TOO_SHORT)) for each in found] == [True, True]


def test_a_healthy_cluster_has_no_obstacles(kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED | {"min.insync.replicas": "2"}, 1)
    producer = Producer({"bootstrap.servers": kafka_bootstrap, "acks": "all"})
    producer.produce(topic, b"value")
    assert producer.flush(30) == 0

    assert transaction_obstacles(Topics(kafka_bootstrap, (topic,)), "group") == []
    assert replica_obstacles(Topics(kafka_bootstrap, (topic,)), [topic, "no-such-topic"]) == []


def test_too_few_replicas_in_sync_are_an_obstacle(degraded_kafka: Kafka) -> None:
    bootstrap = degraded_kafka.nodes[0].address
    topic = create_topic(bootstrap, UNLIMITED | {"min.insync.replicas": "2"}, 1, replicas=2)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    degraded_kafka.kill(degraded_kafka.nodes[1])

    def in_sync() -> int:
        return len(admin.list_topics(topic, timeout=10).topics[topic].partitions[0].isrs)

    eventually(lambda: in_sync() == 1, 60, "the broker that was killed is out of sync")
    failed: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 3000})
    producer.produce(topic, b"value", on_delivery=lambda error, _: failed.append(str(error)))
    producer.flush(30)
    assert failed != ["None"]

    assert [each.split(":")[0] for each in replica_obstacles(Topics(bootstrap, (topic,)), [topic])] == [
        f"{topic}-0 has 1 of 2 replicas in sync, and its min.insync.replicas is 2"
    ]


@pytest.mark.parametrize("incapable_kafka", [KAFKA_NEW], indirect=True)
def test_dry_runs_of_repair_and_replay_name_obstacles_and_nothing_is_written(
    spark: SparkSession, incapable_kafka: Kafka, tmp_path: Path
) -> None:
    bootstrap = incapable_kafka.bootstrap
    polluted = Polluter(bootstrap, now_ms(), partitions=1).write(batches=20, span_ms=HOUR)

    found = plan_repair(spark, bootstrap, polluted.topic, tmp_path / "repair")

    assert [each.startswith((NO_COORDINATOR, TOO_SHORT)) for each in found.obstacles] == [True, True]
    with pytest.raises(CannotWriteTopic, match=f"nothing was written .*\n{NO_COORDINATOR}"):
        repair(spark, bootstrap, polluted.topic, tmp_path / "repair")
    assert f"{polluted.topic}-clean" not in topics_of(bootstrap)

    file = tmp_path / "policies.yaml"
    file.write_text(POLICIES.format(bootstrap=bootstrap))
    audit(spark, bootstrap, polluted.topic, tmp_path / "audit", file, samples=None)
    given: dict[str, Any] = {"fix": "unit", "findings": tmp_path / "audit"}
    dry = plan_replay(spark, bootstrap, polluted.topic, tmp_path / "replay", file, **given)
    assert [each for each in dry.warnings if each.startswith((NO_COORDINATOR, TOO_SHORT))] == list(found.obstacles)
    with pytest.raises(CannotWriteTopic, match=f"nothing was written .*\n{NO_COORDINATOR}"):
        replay(spark, bootstrap, polluted.topic, tmp_path / "replay", file, **given)
