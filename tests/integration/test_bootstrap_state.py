"""`sluicegate bootstrap --state` creates missing topics, changes nothing else, and reports both."""

import uuid
from pathlib import Path

import yaml
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.proxy.cli.test_commands import sluicegate


def test_missing_topics_are_created_and_existing_ones_only_compared(kafka_bootstrap: str, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    state = f"state-{uuid.uuid4().hex[:12]}"
    history = f"{state}-history"
    admin.create_topics([NewTopic(history, 2, 1)])[history].result(30)
    file = tmp_path / "sluicegate.yaml"
    listen = {"bootstrap": "127.0.0.1:19092", "broker_port_base": 19100}
    given = {"upstream": {"bootstrap": [kafka_bootstrap]}, "listen": listen, "state": {"topic": state}}
    file.write_text(yaml.safe_dump(given))

    first, again = (sluicegate("bootstrap", "--state", str(file)) for _ in range(2))

    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert (
        f"state.topic: created {state} with --partitions 1 --replication-factor 1 --config cleanup.policy=compact "
        "--config min.insync.replicas=1"
    ) in first.stdout
    assert f"state.topic: {state} exists and was not changed; its settings are correct" in again.stdout
    for done in (first, again):
        assert f"{history} exists and was not changed; 2 partitions instead of 1" in done.stdout
        assert "retention.ms=604800000 instead of 7776000000" in done.stdout
        assert "--allow-principal User:PROXY --operation Read --operation Write" in done.stdout
    made = admin.describe_topics(TopicCollection([state, history]))
    assert [len(made[name].result(30).partitions) for name in (state, history)] == [1, 2]
    resource = ConfigResource(ConfigResource.Type.TOPIC, state)
    assert admin.describe_configs([resource])[resource].result(30)["cleanup.policy"].value == "compact"


def test_a_cluster_that_does_not_respond_is_named(tmp_path: Path) -> None:
    file = tmp_path / "sluicegate.yaml"
    listen = {"bootstrap": "127.0.0.1:19092", "broker_port_base": 19100}
    file.write_text(
        yaml.safe_dump({"upstream": {"bootstrap": ["127.0.0.1:1"]}, "listen": listen, "state": {"topic": "s"}})
    )

    done = sluicegate("bootstrap", "--state", str(file))

    assert done.returncode == 1
    assert "sluicegate bootstrap: " in done.stderr
