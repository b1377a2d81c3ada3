"""`sluicegate sandbox` works as CI runs it: addresses, reports, exit status, and cleanup."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.proxy.sandbox.process import SandboxFailed, SandboxProcess
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import COMMAND

POLICIES = """
defaults: {message.timestamp.after.max.ms: 1h}
topics:
  - {match: "payments*", cleanup.policy: compact}
  - {match: "watched", cleanup.policy: compact, mode: observe}
"""
CASES = """
config: sluicegate.yaml
cases:
  - {name: a, topic: payments.tested, records: [{key: k}], expect: {outcome: accepted}}
"""


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "sluicegate.yaml").write_text(POLICIES)
    (folder / "payments.test.yaml").write_text(CASES)
    return folder


@pytest.fixture
def sandbox(policies: Path) -> Iterator[SandboxProcess]:
    with SandboxProcess(policies, topics=["more,other", "third"]) as process:
        yield process


def send(bootstrap: str, topic: str, key: str | None, timestamp: int = 0) -> str | None:
    """Send one record, and return the code of the error."""
    errors: list[str | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "checkout", "log_level": 0})
    producer.produce(
        topic,
        "a value",
        key,
        timestamp=timestamp,
        on_delivery=lambda error, _: errors.append(None if error is None else error.name()),
    )
    assert producer.flush(60) == 0
    return errors[0]


def test_a_rejected_batch_is_reported_with_client_record_reason_and_fix(sandbox: SandboxProcess) -> None:
    assert send(sandbox.bootstrap, "payments.eu", "key") is None
    assert send(sandbox.bootstrap, "payments.eu", None) == "INVALID_RECORD"
    assert send(sandbox.bootstrap, "other", "key", timestamp=time.time_ns()) == "INVALID_TIMESTAMP"

    report = sandbox.report()
    assert (report["accepted_records"], report["count"], report["failures"]) == (1, 2, 2)
    assert [(each.event["client_id"], each.code) for each in sandbox.violations()] == [
        ("checkout", "null_key"),
        ("checkout", "timestamp_in_future"),
    ]
    assert [each.number for each in sandbox.violations(after=1)] == [2]
    sample = sandbox.violations()[0].event["samples"][0]
    assert (sample["key"], sample["value"]["text"]) == (None, "a value")

    output = sandbox.stop()
    assert sandbox.process.returncode == 1
    assert "payments.eu: null_key (rejected: 1 batch, 1 bad record)\n  client   checkout, " in output
    assert 'key null, value "a value": null_key\n' in output
    assert output.endswith("sluicegate sandbox: 1 record accepted, 2 violations failed the run\n")


def test_observed_and_allowed_violations_do_not_fail_the_run(policies: Path) -> None:
    with SandboxProcess(policies, allow=["payments*=null_key"]) as sandbox:
        assert send(sandbox.bootstrap, "watched", None) is None
        assert send(sandbox.bootstrap, "payments", None) == "INVALID_RECORD"
        output = sandbox.stop()

    assert sandbox.process.returncode == 0
    assert "watched: null_key (observed: " in output
    assert "payments: null_key (allowed: " in output


def test_sandbox_creates_topics_of_test_cases_and_of_topics_option(sandbox: SandboxProcess) -> None:
    topics = AdminClient({"bootstrap.servers": sandbox.bootstrap}).list_topics(timeout=60).topics
    assert set(topics) == {"payments.tested", "more", "other", "third"}


def test_creating_a_topic_in_the_mock_cluster_fails_with_advice(sandbox: SandboxProcess) -> None:
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap})
    with pytest.raises(KafkaException, match=r"--upstream HOST:PORT"):
        admin.create_topics([NewTopic("new", 1, 1)])["new"].result(60)


def test_a_transaction_and_a_consumer_group_work_on_the_mock_cluster(sandbox: SandboxProcess) -> None:
    producer = Producer({"bootstrap.servers": sandbox.bootstrap, "transactional.id": "t"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("more", "in a transaction", "key")
    producer.commit_transaction(60)
    consumer = Consumer({"bootstrap.servers": sandbox.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["more"])
    try:
        values: list[bytes] = []

        def has_come() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append(message.value())
            return bool(values)

        eventually(has_come, 60)
    finally:
        consumer.close()
    assert values == [b"in a transaction"]


def test_report_endpoint_rejects_query_that_is_not_a_number(sandbox: SandboxProcess) -> None:
    for query in ("after=x", "after=-1", "after=" + "9" * 30):
        with pytest.raises(HTTPError) as error:
            urlopen(f"{sandbox._report}?{query}")
        with error.value:
            assert error.value.code == 400


def test_writes_report_files_and_annotations_and_listens_on_given_ports(policies: Path, tmp_path: Path) -> None:
    first = free_ports(4)
    files = ["--junit", str(tmp_path / "junit.xml"), "--sarif", str(tmp_path / "log.sarif"), "--github"]
    command = [COMMAND, "sandbox", "--config", str(policies), "--listen", f"127.0.0.1:{first}", *files]
    with subprocess.Popen(killed_with_parent(command), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        ready = running.stdout.readline()
        assert ready == (
            f"sluicegate sandbox: bootstrap.servers=127.0.0.1:{first} report=http://127.0.0.1:{first + 1}/report\n"
        )
        send(f"127.0.0.1:{first}", "payments", None)
        running.send_signal(signal.SIGTERM)
        output = running.stdout.read()

    assert running.returncode == 1
    assert "\n::error title=payments%3A null_key " in output
    assert b"<failure" in (tmp_path / "junit.xml").read_bytes()
    assert b'"ruleId": "null_key"' in (tmp_path / "log.sarif").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "missing.yaml"], "missing.yaml"),
        (["--config", "."], "the folder has no sluicegate.yaml"),
        (["--config", "policies", "--allow", "a=b"], "no reason and no rule of the configuration is named b"),
        (["--config", "policies", "--listen", "nowhere"], "--listen: expected host:port"),
        (["--config", "policies", "--topics", "a/b"], "--topics: no topic can be named a/b"),
    ],
)
def test_invalid_argument_is_reported_in_one_line_with_exit_status_2(
    arguments: list[str], words: str, policies: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [COMMAND, "sandbox", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_sandbox_that_fails_to_start_reports_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SandboxFailed, match=r"the folder has no sluicegate\.yaml"):
        SandboxProcess(tmp_path)


def test_unreachable_upstream_is_reported_with_its_address(policies: Path) -> None:
    with pytest.raises(SandboxFailed, match=r"--upstream 127\.0\.0\.1:1: no broker responds within 10 s: "):
        SandboxProcess(policies, upstream=["127.0.0.1:1"])
