"""If a leader is killed in the middle of a job and returns as a follower, the result is the same."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.profile.cells import HOURS
from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.jobs.verify.job import verify
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.broker.eventually import eventually
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka, Node
from tests.integration.topics import create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.pipeline.disturbed import disturb_once, tasks_running
from tests.pipeline.large_partition import large_partition
from tests.pipeline.polluted import HOUR, UNLIMITED
from tests.wire.raw_client import RawClient

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(900),
    pytest.mark.long,
]
NOW = time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from run_kafka(Kafka(KAFKA_NEW, tmp_path_factory.mktemp("cluster"), size=3))


@pytest.fixture(scope="module")
def topic(cluster: Kafka) -> str:
    name = create_topic(cluster.bootstrap, UNLIMITED, 1, replicas=3)
    return large_partition(leader_of(cluster, name).address, NOW, topic=name)


def describe_partition(cluster: Kafka, topic: str) -> Any:
    """Return the partition's metadata from the first broker that responds."""
    for node in cluster.nodes:
        try:
            with RawClient(node.address) as client:
                return client.metadata(topic)["topics"][0]["partitions"][0]
        except OSError:
            continue
    raise AssertionError("no broker responds")


def leader_of(cluster: Kafka, topic: str) -> Node:
    leader = describe_partition(cluster, topic)["leader_id"]
    return next(node for node in cluster.nodes if node.node_id == leader)


def jobs_by_name(spark: SparkSession, topics: Topics, folder: Path) -> dict[str, Callable[[], Any]]:
    results = Results(spark, str(folder))

    def profile_topic() -> Any:
        summary = profile(spark, topics, results, NOW, HOUR, None)
        return summary, sorted(map(str, results.read_table(HOURS).collect()))

    return {"profile": profile_topic, "verify": lambda: verify(spark, topics, topics.names[0], results, NOW)}


@pytest.mark.parametrize("job", ["profile", "verify"])
def test_a_job_survives_the_restart_of_a_leader(
    spark: SparkSession, cluster: Kafka, topic: str, tmp_path: Path, job: str
) -> None:
    work = jobs_by_name(spark, Topics(cluster.bootstrap, (topic,)), tmp_path)[job]
    as_it_is = work()
    eventually(lambda: len(describe_partition(cluster, topic)["isr_nodes"]) == 3, what="all replicas in sync")
    leader = leader_of(cluster, topic)

    def kill_and_start() -> None:
        cluster.kill(leader)
        cluster.start_node(leader)

    with disturb_once(tasks_running(spark), kill_and_start):
        disturbed = work()

    assert disturbed == as_it_is
    assert leader_of(cluster, topic) is not leader
    cluster.wait_until_up(leader)
