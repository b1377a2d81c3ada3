"""A run selects topics by patterns, or the whole cluster, on a separate broker."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from sluicegate.pipeline.kafka.cluster import ClusterTopic
from sluicegate.pipeline.source.topics import BadSelection, Selection, only_names, selection
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.integration.topics import create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.pipeline.commands import run, summary
from tests.pipeline.polluted import UNLIMITED

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
OFFSETS = "__consumer_offsets"


@dataclass
class TopicsInCluster:
    """A cluster with two topics of orders and one of payments, with ten records each, and the internal topic of
    groups."""

    bootstrap: str
    orders: list[str]
    payments: str


@pytest.fixture(scope="module")
def cluster_with_topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopicsInCluster]:
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("selection"))
    try:
        address = kafka.start().bootstrap
        orders = sorted(create_topic(address, UNLIMITED, 1, prefix="orders") for _ in range(2))
        payments = create_topic(address, UNLIMITED, 1, prefix="payments")
        producer = Producer({"bootstrap.servers": address})
        for name in (*orders, payments):
            for _ in range(10):
                producer.produce(name, b"v")
        assert producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": address, "group.id": "g"})
        eventually(lambda: OFFSETS in consumer.list_topics(timeout=30).topics or consumer.subscribe([payments])
                   or consumer.poll(0.2), what=OFFSETS)  # fmt: skip
        consumer.close()
        yield TopicsInCluster(address, orders, payments)
    finally:
        kafka.stop()


def test_one_run_selects_topics_by_glob_expression_and_name(
    cluster_with_topics: TopicsInCluster, tmp_path: Path
) -> None:
    about = ("profile", "--bootstrap", cluster_with_topics.bootstrap, "--out", str(tmp_path))

    run(*about, "--topic", "/orders-[0-9a-f]{12}/", "--topic", cluster_with_topics.payments, "--topic", "order*")

    topics = summary(tmp_path)["topics"]
    assert list(topics) == [*cluster_with_topics.orders, cluster_with_topics.payments]
    assert [topic["records"] for topic in topics.values()] == [10, 10, 10]


def test_all_topics_skips_internal_topics_with_a_warning(cluster_with_topics: TopicsInCluster, tmp_path: Path) -> None:
    output = run("profile", "--bootstrap", cluster_with_topics.bootstrap, "--all-topics", "--out", str(tmp_path))

    assert list(summary(tmp_path)["topics"]) == [*cluster_with_topics.orders, cluster_with_topics.payments]
    assert summary(tmp_path)["left_out"] == [OFFSETS]
    message = f"internal topics are skipped unless named: {OFFSETS}"
    assert f"warning: {message}\n" in output
    assert message in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("asked", "output"),
    [
        ((), "no topics: use --topic with a name or a pattern, or --all-topics"),
        (("--topic", "ordres-*"), "'ordres-*' matches none of the 3 topics of this cluster, such as orders-"),
        (("--topic", "__*"), f"'__*' matches only internal topics, which must be named: {OFFSETS}"),
        (("--topic", "/(?=a)/"), "--topic '/(?=a)/': not a regular expression that RE2 accepts"),
    ],
)
def test_pattern_without_match_is_rejected_before_the_job_starts(
    asked: tuple[str, ...], output: str, cluster_with_topics: TopicsInCluster, tmp_path: Path
) -> None:
    message = run(
        "profile", "--bootstrap", cluster_with_topics.bootstrap, *asked, "--out", str(tmp_path / "out"), status=1
    )

    assert message.startswith(f"sluicegate-spark: {output}")
    assert len(message.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_commands_that_write_reject_topic_patterns(cluster_with_topics: TopicsInCluster, tmp_path: Path) -> None:
    message = run(
        "repair", "--bootstrap", cluster_with_topics.bootstrap, "--topic", "orders-*", "--out", str(tmp_path), status=1
    )

    assert (
        message == "sluicegate-spark: 'orders-*' is a pattern, but this job takes names: use --topic for each topic\n"
    )
    assert only_names(["b", "a", "b"]) == Selection(("b", "a"))


class ManyTopics:
    """A cluster with `count` topics."""

    def __init__(self, count: int) -> None:
        self._count = count

    def topics(self) -> list[ClusterTopic]:
        return [ClusterTopic(f"orders-{number:06d}", is_internal=False) for number in range(self._count)]


def test_rejects_more_topics_than_the_limit_of_a_run() -> None:
    assert len(selection(ManyTopics(10_000), ["*"]).names) == 10_000
    with pytest.raises(BadSelection, match=r"10,001 topics match, and the limit for one run is 10,000: use narrower"):
        selection(ManyTopics(10_001), ["orders-*"])
    with pytest.raises(BadSelection) as raised:
        selection(ManyTopics(10_001), ["paym*"])
    assert len(str(raised.value)) < 400


def test_an_internal_topic_is_selected_if_it_is_named() -> None:
    class OwnTopics:
        def topics(self) -> list[ClusterTopic]:
            return [
                ClusterTopic("a", is_internal=False),
                ClusterTopic("__b", is_internal=False),
                ClusterTopic("c", True),
            ]

    assert selection(OwnTopics(), ["*"]) == Selection(("a",), ("__b", "c"))
    assert selection(OwnTopics(), ["*", "__b"]) == Selection(("a", "__b"), ("c",))
