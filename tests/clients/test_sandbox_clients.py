"""Clients work with `sluicegate sandbox` and its mock cluster, except for requests that get an error with advice."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.proxy_process import COMMAND
from tests.clients.programs import COUNT, HERE, PROGRAMS, Program
from tests.integration.java import java_tool

POLICIES = """
defaults: {message.timestamp.before.max.ms: 7d, message.timestamp.after.max.ms: 1h}
topics: [{match: "keyed*", cleanup.policy: compact}]
"""
TOPICS = [re.sub(r"\W", "-", program.name) for program in PROGRAMS]
ADVICE = "give the sandbox a broker with --upstream HOST:PORT"


class Sandbox:
    """The command with its standard error in a file."""

    def __init__(self, folder: Path) -> None:
        (folder / "sluicegate.yaml").write_text(POLICIES)
        self.errors = folder / "errors"
        topics = [topic for name in TOPICS for topic in (name, f"keyed-{name}")]
        command = [COMMAND, "sandbox", "--config", str(folder), "--topics", ",".join(topics)]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                killed_with_parent(command), stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        found = re.search(r"bootstrap\.servers=(\S+)", self.process.stdout.readline())
        assert found is not None, self.errors.read_text()
        self.bootstrap = found[1]

    def stop(self) -> str:
        self.process.terminate()
        return self.process.communicate(timeout=60)[0]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    sandbox = Sandbox(tmp_path_factory.mktemp("sandbox"))
    yield sandbox
    output = sandbox.stop()
    assert sandbox.process.returncode in (0, 1), sandbox.errors.read_text()
    assert "sluicegate sandbox: " in output


def test_librdkafka_gets_an_error_for_a_new_kind_of_group(sandbox: Sandbox) -> None:
    """Without the error, its consumer waits for ever."""
    consumer = Consumer({"bootstrap.servers": sandbox.bootstrap, "group.id": "g", "group.protocol": "consumer"})
    consumer.subscribe([TOPICS[0]])
    try:
        message = consumer.poll(60)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._FATAL
        assert "API version not supported" in error.str()
    finally:
        consumer.close()
    eventually(lambda: ADVICE in sandbox.errors.read_text(), 60)
    assert "ConsumerGroupHeartbeat" in sandbox.errors.read_text()


@pytest.mark.long
def test_java_gets_errors_with_advice_and_the_sandbox_keeps_running(sandbox: Sandbox) -> None:
    """A heartbeat of Java's consumer ends the process of the mock cluster (librdkafka 2.16)."""
    lines = java_tool(str(HERE / "SandboxLimits.java"), sandbox.bootstrap, TOPICS[0]).splitlines()

    outcomes = {name: text for name, _, text in (line.partition(" ") for line in lines)}
    for name in ("create", "delete", "describe-settings"):
        assert outcomes[name].startswith("UnsupportedVersionException: "), outcomes
        assert outcomes[name].endswith(ADVICE)
    for name in ("delete-records", "all-offsets", "consumer-group", "share-group"):
        assert outcomes[name].startswith("UnsupportedVersionException: "), outcomes
    assert "Set group.protocol=classic" in outcomes["consumer-group"]
    assert TOPICS[0] in outcomes["list-topics"]
    eventually(lambda: "ShareGroupHeartbeat" in sandbox.errors.read_text(), 60)
    assert {"DeleteRecords", "DeleteTopics"} <= set(re.findall(r"\w+", sandbox.errors.read_text()))
    assert sandbox.process.poll() is None


@pytest.mark.long
@pytest.mark.parametrize(("program", "topic"), list(zip(PROGRAMS, TOPICS, strict=True)), ids=TOPICS)
def test_a_client_produces_commits_and_consumes_in_a_group(program: Program, topic: str, sandbox: Sandbox) -> None:
    if program.version is None:
        pytest.skip(f"requires {program.requirements}")

    for label in ("default", "strict"):
        program.run(f"produce-{label}", sandbox.bootstrap, topic)
    read = program.run("consume", sandbox.bootstrap, topic, str(2 * COUNT)).splitlines()

    assert sorted(read) == sorted(f"{label} {i}" for label in ("default", "strict") for i in range(COUNT))
    assert topic in program.run("topics", sandbox.bootstrap, topic)
    rejected = program.run("reject", sandbox.bootstrap, f"keyed-{topic}")
    assert re.search(r"timestamp|INVALID_RECORD|failed to validate", rejected, re.IGNORECASE), rejected
