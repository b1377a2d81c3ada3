"""A broker's policies (`create.topic.policy.class.name`, `alter.config.policy.class.name`) only see its own settings.
If they reject a request, it stores no topic setting of sluicegate.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_shared_state import STATE, create_state_topic
from tests.integration.test_topic_policies import admin, alter, refusal, set_values
from tests.integration.topics import create_topic
from tests.oracle.kafka_java import KAFKA_NEW

pytestmark = pytest.mark.long

PROGRAM = str(Path(__file__).parents[1] / "broker" / "KafkaWithPolicies.java")
MODE, RETENTION = "sluicegate.mode", "retention.ms"
REFUSED = ("POLICY_VIOLATION", "the broker's policy forbids it")


@dataclass(frozen=True)
class Cluster:
    """A proxy in front of a broker with policies, which write what they see to a file."""

    bootstrap: str
    proxy: ProxyProcess
    seen: Path

    def seen_of(self, topic: str) -> list[str]:
        """Return what the policies have seen of a topic, without its name."""
        lines = self.seen.read_text().splitlines() if self.seen.exists() else []
        return [line.replace(f" {topic}", "") for line in lines if topic in line]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    seen = tmp_path_factory.mktemp("policies") / "seen"
    kafka = Kafka(
        KAFKA_NEW,
        tmp_path_factory.mktemp("kafka"),
        settings={
            "create.topic.policy.class.name": "KafkaWithPolicies$Creation",
            "alter.config.policy.class.name": "KafkaWithPolicies$Alteration",
        },
        program=PROGRAM,
        options=(f"-Dpolicies.seen={seen}",),
    )
    process = None
    try:
        kafka.start()
        state = create_topic(kafka.bootstrap, STATE, partitions=1, prefix="state")
        for other in ("presence", "history"):
            create_state_topic(kafka.bootstrap, f"{state}-{other}")
        process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka.bootstrap)
        process.config |= {"state": {"topic": state}, "topic_policies": [{"topics": ["*"], "keys": ["*"]}]}
        process.start()
        yield Cluster(kafka.bootstrap, process, seen)
    finally:
        if process is not None:
            process.stop()
        kafka.stop()


def new_name(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:12]}"


def create(bootstrap: str, topic: str, settings: dict[str, str]) -> None:
    """Create a topic. Raises KafkaException."""
    admin(bootstrap).create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(60)


def replace(bootstrap: str, topic: str, settings: dict[str, str]) -> None:
    """Replace all settings of a topic (AlterConfigs). Raises KafkaException."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config=settings)
    client = AdminClient({"bootstrap.servers": bootstrap})
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        futures = client.alter_configs([resource])
    futures[resource].result(60)


def change(bootstrap: str, topic: str, settings: dict[str, str]) -> None:
    alter(bootstrap, topic, **{name.replace(".", "__"): value for name, value in settings.items()})


SETTINGS = pytest.mark.parametrize(
    "settings", [{MODE: "observe"}, {MODE: "observe", RETENTION: "7200000"}], ids=["ours", "mixed"]
)
CHANGES = pytest.mark.parametrize("make_change", [change, replace], ids=["incremental", "replacing"])
Change = Callable[[str, str, dict[str, str]], None]


def test_a_broker_policy_for_new_topics_gets_only_the_brokers_settings(cluster: Cluster) -> None:
    through, direct = new_name("orders"), new_name("orders")
    create(cluster.bootstrap, direct, {RETENTION: "7200000"})

    create(cluster.proxy.bootstrap, through, {RETENTION: "7200000", MODE: "observe"})

    assert cluster.seen_of(through) == cluster.seen_of(direct)
    assert "create {retention.ms=7200000}" in cluster.seen_of(through)
    assert not [line for line in cluster.seen_of(through) if MODE in line]
    assert set_values(cluster.proxy.bootstrap, through) == {MODE: "observe"}


@CHANGES
def test_a_broker_policy_for_alterations_gets_only_the_brokers_settings(cluster: Cluster, make_change: Change) -> None:
    through, direct = new_name("orders"), new_name("orders")
    for topic in (through, direct):
        create(cluster.bootstrap, topic, {})
    make_change(cluster.bootstrap, direct, {RETENTION: "7200000"})

    make_change(cluster.proxy.bootstrap, through, {RETENTION: "7200000", MODE: "observe"})

    assert cluster.seen_of(through) == cluster.seen_of(direct)
    assert "alter {retention.ms=7200000}" in cluster.seen_of(through)
    assert not [line for line in cluster.seen_of(through) if MODE in line]
    assert set_values(cluster.proxy.bootstrap, through) == {MODE: "observe"}
    eventually(lambda: through in history(cluster), what="an entry of the history")


@SETTINGS
def test_a_topic_that_a_broker_policy_rejects_leaves_no_setting(cluster: Cluster, settings: dict[str, str]) -> None:
    topic = new_name("uncreatable")

    assert refusal(lambda: create(cluster.proxy.bootstrap, topic, settings)) == REFUSED

    assert topic not in admin(cluster.bootstrap).list_topics(timeout=30).topics
    assert is_without_history(cluster, topic)


@CHANGES
@SETTINGS
def test_an_alteration_that_a_broker_policy_rejects_leaves_no_setting(
    cluster: Cluster, make_change: Change, settings: dict[str, str]
) -> None:
    topic = new_name("unalterable")
    create(cluster.bootstrap, topic, {})

    assert refusal(lambda: make_change(cluster.proxy.bootstrap, topic, settings)) == REFUSED

    assert set_values(cluster.proxy.bootstrap, topic) == {}
    assert is_without_history(cluster, topic)
    assert not [line for line in cluster.seen_of(topic) if MODE in line]


def is_without_history(cluster: Cluster, topic: str) -> bool:
    """Return whether no change of the topic's settings was stored."""
    return topic not in history(cluster)


def history(cluster: Cluster) -> str:
    status, text = cluster.proxy.get("/api/changes?days=1")
    assert status == 200
    return text
