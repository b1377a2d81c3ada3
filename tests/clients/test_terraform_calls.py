"""Policies are topic settings for the requests of Terraform's Kafka provider, which uses sarama.

The provider creates topics, describes them (with DescribeConfigs v1, and compares the settings whose source is the
topic), replaces settings (AlterConfigs) or changes them (IncrementalAlterConfigs), and deletes topics.
"""

import json
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.clients.programs import BUILT
from tests.integration.test_shared_state import STATE, create_state_topic
from tests.integration.topics import create_topic

pytestmark = pytest.mark.long

PROGRAM = BUILT / "go" / "terraform"
FIRST = {"retention.ms": "7200000", "sluicegate.mode": "observe", "sluicegate.owner": "payments"}
SECOND = {"retention.ms": "7200000", "sluicegate.mode": "mark", "sluicegate.enforce.percent": "10"}


@pytest.fixture(scope="module")
def proxies(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ProxyProcess]]:
    """Yield two proxies that share a state topic."""
    state = create_topic(kafka_bootstrap, STATE, partitions=1, prefix="state")
    for other in ("presence", "history"):
        create_state_topic(kafka_bootstrap, f"{state}-{other}")
    started = []
    try:
        for _ in range(2):
            process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap)
            process.config |= {"state": {"topic": state}, "topic_policies": [{"topics": ["orders-*"], "keys": ["*"]}]}
            started.append(process.start())
        yield started
    finally:
        for process in started:
            process.stop()


def call(proxy: ProxyProcess, command: str, topic: str, settings: dict[str, str] | None = None) -> str:
    """Run the program, and return its output or the error that it prints."""
    given = [f"{name}={value}" for name, value in (settings or {}).items()]
    done = subprocess.run(
        [str(PROGRAM), proxy.bootstrap, command, topic, *given],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def read(proxy: ProxyProcess, topic: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(call(proxy, "read", topic))
    return found


@pytest.mark.skipif(not PROGRAM.exists(), reason="requires Go; `make clients` builds it")
@pytest.mark.parametrize("update", ["replace", "change"])
def test_terraform_sets_reads_replaces_and_deletes(proxies: list[ProxyProcess], update: str) -> None:
    one, other = proxies
    topic = f"orders-{uuid.uuid4().hex[:12]}"

    assert call(one, "create", topic, FIRST) == ""
    eventually(lambda: read(one, topic) == FIRST, what="the settings of a new topic")
    eventually(lambda: read(other, topic) == FIRST, what="the settings at the other proxy")

    removed = {"sluicegate.owner": ""} if update == "change" else {}  # a name without a value deletes the setting
    assert call(one, update, topic, SECOND | removed) == ""
    assert read(one, topic) == SECOND
    eventually(lambda: read(other, topic) == SECOND, what="the changed settings at the other proxy")

    assert "did you mean observe?" in call(one, update, topic, {"sluicegate.mode": "observ"})
    assert read(one, topic) == SECOND

    assert call(one, "delete", topic) == ""
    eventually(lambda: "does not exist" in call(one, "read", topic), what="a deleted topic")
    eventually(lambda: call(one, "create", topic, {"retention.ms": "7200000"}) == "", what="a topic of the same name")
    eventually(
        lambda: topic_settings(one, topic) == {"retention.ms": "7200000"}, what="a topic without settings of ours"
    )


def topic_settings(proxy: ProxyProcess, topic: str) -> dict[str, str] | None:
    """Return the settings of a topic, or None if the brokers do not know it yet."""
    output = call(proxy, "read", topic)
    return json.loads(output) if output.startswith("{") else None
