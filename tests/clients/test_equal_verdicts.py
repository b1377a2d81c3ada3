"""The same 500 records get the same verdicts from the sandbox, from a proxy in front of a broker, and from `try`."""

import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.loading import Loaded, load
from sluicegate.protocol.records.writing import NewRecord
from sluicegate.proxy.cli.try_record import validate_one
from sluicegate.proxy.sandbox.process import SandboxProcess
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.clients.programs import PROGRAMS, Program
from tests.clients.test_matrix import COMPACTED, lines_without_varying_parts
from tests.integration.topics import UNVALIDATED, VALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW

pytestmark = pytest.mark.long

RECORDS = 500
DAY_MS = 86_400_000
POLICIES: dict[str, Any] = {
    "defaults": {"message.timestamp.before.max.ms": 7 * DAY_MS, "message.timestamp.after.max.ms": 3_600_000},
    "topics": [
        {"match": "keyed-*", "cleanup.policy": "compact"},
        {"match": "watched-*", "cleanup.policy": "compact", "mode": "observe"},
        {"match": "old-*", "message.timestamp.before.max.ms": 400 * DAY_MS, "message.timestamp.after.max.ms": 60_000},
        {
            "match": "ruled-*",
            "rules": [
                {"name": "a JSON text", "value": {"required": True, "json": {}}},
                {"name": "positive", "cel": "has(value.amount) && value.amount > 0"},
            ],
        },
    ],
}
PREFIXES = ("plain", "keyed", "watched", "old", "ruled")


@dataclass(frozen=True)
class Sent:
    """A generated record. Its value names it."""

    number: int
    prefix: str
    key: str | None
    timestamp: int
    value: str


def generated(now_ms: int) -> list[Sent]:
    """Return valid and invalid records for each policy; no timestamp is near a bound."""
    chance = random.Random(68)
    offsets = (0, -1_000, -3 * DAY_MS, -30 * DAY_MS, -500 * DAY_MS, 600_000, 30 * DAY_MS)
    records = []
    for number in range(RECORDS):
        timestamp = now_ms + chance.choice(offsets)
        unit = chance.choice((1, 1, 1, 1000, 1_000_000))
        value = chance.choice(
            (f'{{"number": {number}, "amount": 5}}', f'{{"number": {number}, "amount": -5}}', f'{{"number": {number}}}')
        )
        key = chance.choice(("key", "key", None))
        records.append(Sent(number, chance.choice(PREFIXES), key, timestamp * unit, value))
    return records


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("kafka"))
    try:
        yield kafka.start()
    finally:
        kafka.stop()


def outcomes_of(bootstrap: str, topics: dict[str, str], records: list[Sent]) -> dict[int, str]:
    """Send each record in a batch of its own, and return the error of each, or "ok"."""
    outcomes: dict[int, str] = {}
    producer = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 1, "linger.ms": 0, "log_level": 0})
    for record in records:

        def report(error: Any, _message: Any, number: int = record.number) -> None:
            outcomes[number] = "ok" if error is None else error.name()

        producer.produce(
            topics[record.prefix], record.value, record.key, partition=0, timestamp=record.timestamp, on_delivery=report
        )
    assert producer.flush(120) == 0
    return outcomes


def events_by_number(events: list[dict[str, Any]]) -> dict[int, tuple[str, ...]]:
    """Return what each event reports about its record, without times and topics."""
    found = {}
    for event in events:
        (sample,) = event["samples"]
        named = re.search(r'"number": (\d+)', sample["value"]["text"])
        assert named is not None
        parts = (event["reason"], event["mode"], event["error"], str(sample.get("rules")), str(sample.get("diagnosis")))
        found[int(named[1])] = tuple(re.sub(r"[\d.]+ (s|min|h|days?|years?)\b", "TIME", part) for part in parts)
    return found


def trial(loaded: Loaded, topic: str, record: Sent, now_ms: int) -> str:
    """Return the error that `sluicegate try` reports, or "ok"."""
    key = None if record.key is None else record.key.encode()
    result = validate_one(topic, NewRecord(record.timestamp, key, record.value.encode()), loaded, now_ms)
    if result.is_forwarded:
        return "ok"
    found = re.search(r"^rejected: (\w+) \(\d+\): ", "\n".join(result.lines), re.MULTILINE)
    assert found is not None, result.lines
    return found[1]


def test_sandbox_proxy_and_try_agree_about_500_records(broker: Kafka, tmp_path: Path) -> None:
    topics = {each: create_topic(broker.bootstrap, UNVALIDATED, partitions=1, prefix=each) for each in PREFIXES}
    now_ms = time.time_ns() // 1_000_000
    records = generated(now_ms)
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "sluicegate.yaml").write_text(yaml.safe_dump(POLICIES))
    with SandboxProcess(policies, topics=list(topics.values())) as sandbox:
        in_sandbox = outcomes_of(sandbox.bootstrap, topics, records)
        reported = events_by_number([each.event for each in sandbox.violations()])
        failures = sandbox.report()["failures"]
    folder = tmp_path / "proxy"
    folder.mkdir()
    live = {"defaults": POLICIES["defaults"] | {"samples": True}, "topics": POLICIES["topics"]}
    proxy = ProxyProcess(folder, broker.bootstrap, live)
    try:
        proxy.start()
        in_proxy = outcomes_of(proxy.bootstrap, topics, records)
        eventually(lambda: len(proxy.violations()) >= len(reported), 60)
        written = events_by_number(proxy.violations())
    finally:
        proxy.stop()
    file = folder / "sluicegate.yaml"
    loaded = load(read_file(file), {}, (), file.parent)
    tried = {record.number: trial(loaded, topics[record.prefix], record, now_ms) for record in records}

    assert in_sandbox == in_proxy == tried
    assert reported == written
    rejected = [number for number, outcome in tried.items() if outcome != "ok"]
    assert len(rejected) == failures
    assert 100 < len(rejected) < 400
    assert {each[0] for each in reported.values()} >= {
        "null_key",
        "rule_violated",
        "timestamp_in_future",
        "timestamp_too_old",
    }


@pytest.fixture(scope="module")
def endpoints(
    broker: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ProxyProcess, SandboxProcess, dict[str, str]]]:
    """Yield a proxy in front of the broker, a sandbox with the same policies, and a topic for each client."""
    topics = {each.name: create_topic(broker.bootstrap, UNVALIDATED, partitions=1, prefix="keyed") for each in PROGRAMS}
    limits = {name: int(value) for name, value in VALIDATED.items()}
    policies = {"defaults": limits, "topics": [{"match": "keyed-*", **COMPACTED}]}
    folder = tmp_path_factory.mktemp("policies")
    (folder / "sluicegate.yaml").write_text(yaml.safe_dump(policies))
    proxy = ProxyProcess(tmp_path_factory.mktemp("proxy"), broker.bootstrap, policies)
    try:
        proxy.start()
        with SandboxProcess(folder, topics=list(topics.values())) as sandbox:
            yield proxy, sandbox, topics
    finally:
        proxy.stop()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_client_reports_the_same_errors_in_sandbox_and_proxy(
    program: Program, endpoints: tuple[ProxyProcess, SandboxProcess, dict[str, str]]
) -> None:
    if program.version is None:
        pytest.skip(f"requires {program.requirements}")
    proxy, sandbox, topics = endpoints
    topic = topics[program.name]

    shown = [
        lines_without_varying_parts(program.run("reject", bootstrap, topic), topic)
        for bootstrap in (proxy.bootstrap, sandbox.bootstrap)
    ]

    assert shown[0] == shown[1] != []
    (written, *_) = proxy.wait_for_violations(topic, 1)
    (reported, *_) = [each.event for each in sandbox.violations() if each.event["topic"] == topic]
    for field in ("reason", "error", "bad_records", "mode"):
        assert reported[field] == written[field]
