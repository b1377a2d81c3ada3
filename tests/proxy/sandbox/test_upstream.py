"""`sluicegate sandbox --upstream` works with a throw-away broker, with its transactions, groups and topics."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.proxy.sandbox.process import SandboxProcess
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import COMMAND
from tests.oracle.kafka_java import KAFKA_NEW
from tests.proxy.sandbox.test_sandbox import CASES, POLICIES, send

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("kafka"))
    try:
        yield kafka.start()
    finally:
        kafka.stop()


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "sluicegate.yaml").write_text(POLICIES)
    (folder / "payments.test.yaml").write_text(CASES)
    return folder


def read_in_group(bootstrap: str, topic: str, protocol: str, count: int) -> list[bytes]:
    """Return the values that a consumer of a new group reads, after committing them."""
    settings = {"bootstrap.servers": bootstrap, "group.id": f"{topic}-{protocol}", "group.protocol": protocol}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([topic])
    values: list[bytes] = []

    def have_come() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            values.append(message.value())
        return len(values) >= count

    try:
        eventually(have_come, 120)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return values


def test_topics_transactions_and_consumer_groups_work_with_upstream_broker(policies: Path, broker: Kafka) -> None:
    with SandboxProcess(policies, upstream=[broker.bootstrap], topics=["more"]) as sandbox:
        admin = AdminClient({"bootstrap.servers": sandbox.bootstrap})
        assert {"payments.tested", "more"} <= set(admin.list_topics(timeout=60).topics)
        admin.create_topics([NewTopic("new", 1, 1)])["new"].result(60)

        producer = Producer({"bootstrap.servers": sandbox.bootstrap, "transactional.id": "t", "log_level": 0})
        producer.init_transactions(60)
        for value, is_committed in (("aborted", False), ("committed", True)):
            producer.begin_transaction()
            producer.produce("new", value, "key")
            assert producer.flush(60) == 0
            (producer.commit_transaction if is_committed else producer.abort_transaction)(60)
        for protocol in ("classic", "consumer"):
            assert read_in_group(sandbox.bootstrap, "new", protocol, 1) == [b"committed"]
        producer.begin_transaction()
        producer.produce("payments.tested", "without a key")
        producer.flush(60)
        producer.abort_transaction(60)

        assert [each.code for each in sandbox.violations()] == ["null_key"]
        output = sandbox.stop()
    assert sandbox.process.returncode == 1
    assert "payments.tested: null_key (rejected: 1 batch, 1 bad record)\n" in output
    assert output.endswith("1 violation failed the run\n")


def test_sandbox_starts_if_topics_already_exist(policies: Path, broker: Kafka) -> None:
    for _ in range(2):
        with SandboxProcess(policies, upstream=[broker.bootstrap], topics=["twice"]) as sandbox:
            assert send(sandbox.bootstrap, "payments.tested", "key") is None
        assert sandbox.process.returncode == 0


def test_upstream_report_equals_mock_cluster_report(policies: Path, broker: Kafka, tmp_path: Path) -> None:
    """Lines, JUnit, SARIF and annotations are equal, apart from times and generated values."""
    reports = [report_of(policies, tmp_path, ["--upstream", broker.bootstrap]), report_of(policies, tmp_path, [])]
    assert reports[0] == reports[1]
    assert "::error title=payments.tested%3A null_key (rejected%3A 1 batch%2C 1 bad record)::" in reports[0][0]


def report_of(policies: Path, folder: Path, options: list[str]) -> tuple[str, str, object]:
    files = [f"--junit={folder / 'junit.xml'}", f"--sarif={folder / 'log.sarif'}", "--github"]
    command = [COMMAND, "sandbox", "--config", str(policies), *files, *options]
    with subprocess.Popen(killed_with_parent(command), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        found = re.search(r"bootstrap\.servers=(\S+)", running.stdout.readline())
        assert found is not None
        producer = Producer({"bootstrap.servers": found[1], "client.id": "checkout", "log_level": 0})
        for key in ("key", None):
            producer.produce("payments.tested", "a value", key, 0)
            assert producer.flush(60) == 0
        running.terminate()
        output = running.stdout.read()
    assert running.returncode == 1, output
    log = json.loads(without_times((folder / "log.sarif").read_text()))
    return without_times(output), without_times((folder / "junit.xml").read_text()), log


def without_times(text: str) -> str:
    return re.sub(r"\d{13}", "TIME", text)
