"""An audit of stored records reports the same figures as a proxy in mode observe through which they were written."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.loading import load
from sluicegate.pipeline.jobs.audit import job, report
from sluicegate.pipeline.jobs.audit.job import clients_of
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import create_topic
from tests.pipeline.commands import run
from tests.pipeline.polluted import DAY, HOUR, UNLIMITED
from tests.wire.batches import GZIP, LZ4, NONE, ZSTD, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SHAPE = '{"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}}}'
RULES: list[dict[str, Any]] = [
    {"name": "small", "value": {"max_size": 40}},
    {"name": "keyed", "key": {"required": True}, "mode": "observe"},
    {"name": "tenant", "headers": {"required": ["tenant"]}},
    {"name": "shape", "value": {"schema": {"file": "shape.json", "format": "json"}}},
    {"name": "positive", "cel": "value.amount > 0"},
    {"name": "order", "time": {"monotonic": True}, "mode": "observe"},
]
TENANT = [(b"tenant", b"a")]
GOOD = b'{"amount": 1}'


def policies_of_modes(mode: str, folder: Path) -> dict[str, Any]:
    (folder / "shape.json").write_text(SHAPE)
    rules = json.loads(json.dumps(RULES).replace("shape.json", str(folder / "shape.json")))
    bounds = {"message.timestamp.before.max.ms": 7 * DAY, "message.timestamp.after.max.ms": HOUR}
    tried = {"message.timestamp.before.max.ms": [HOUR, DAY], "message.timestamp.after.max.ms": ["10m"]}
    return {"defaults": {**bounds, "mode": mode, "rehearse": tried, "rules": rules}}


def batches_with_violations(now: int) -> list[tuple[int, list[Rec], dict[str, int]]]:
    """Return batches with their codec and producer; some violate a policy."""

    def record_with_time(
        time_ms: int = now, key: bytes | None = b"k", value: bytes | None = GOOD, headers: Any = TENANT
    ) -> Rec:
        return Rec(time_ms, key, value, headers)

    idempotent = {"producer_id": 7000, "producer_epoch": 0}
    return [
        *((LZ4, [record_with_time(now + i) for i in range(20)], {}) for _ in range(3)),
        (
            NONE,
            [
                record_with_time(),
                record_with_time((now + 5) * 1_000_000),
                record_with_time(now - 30 * DAY),
                record_with_time(-1),
            ],
            {},
        ),
        (ZSTD, [record_with_time(now // 1000), record_with_time(0), record_with_time()], {}),
        (
            GZIP,
            [record_with_time(now + 30 * 60_000), record_with_time(now - 2 * HOUR), record_with_time(now - 2 * DAY)],
            {},
        ),
        (
            LZ4,
            [
                record_with_time(value=b'{"amount": 1, "note": "' + b"x" * 50 + b'"}'),
                record_with_time(headers=[]),
                record_with_time(key=None),
            ],
            {},
        ),
        (
            NONE,
            [
                record_with_time(value=b'{"amount": "1"}'),
                record_with_time(value=b"no json", headers=[]),
                record_with_time(value=b'{"amount": -1}'),
                record_with_time(value=b'{"amount": null}'),
                record_with_time(value=None),
            ],
            {},
        ),
        (
            NONE,
            [record_with_time(now - 60_000), record_with_time(now - 61_000), record_with_time(key=None)],
            {**idempotent, "base_sequence": 0},
        ),
        (LZ4, [record_with_time(now - 62_000, key=None), record_with_time()], {**idempotent, "base_sequence": 3}),
        *((LZ4, [record_with_time(now + i) for i in range(20)], {}) for _ in range(3)),
    ]


@pytest.fixture(scope="module")
def observed_topic(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, ProxyProcess]]:
    """Yield a topic that was written through a proxy in mode observe, and this proxy."""
    folder = tmp_path_factory.mktemp("observing")
    topic = create_topic(kafka_bootstrap, UNLIMITED, 2)
    proxy = ProxyProcess(folder, kafka_bootstrap, policies_of_modes("observe", folder))
    try:
        proxy.start()
        now = time.time_ns() // 1_000_000
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            for partition in (0, 1):
                for codec, records, producer in batches_with_violations(now):
                    response = client.produce(9, [topic_data(topic, (partition, batch(records, codec, **producer)))])
                    assert isinstance(response, dict)
                    assert response["responses"][0]["partition_responses"][0]["error_code"] == 0, response
        proxy.wait_for_violations(topic, 2 * (12 + 3))  # all batches except the first; three exceed rehearsed bounds
        yield topic, proxy
    finally:
        proxy.stop()


def audit_topic(spark: SparkSession, bootstrap: str, topic: str, file: Path, out: Path) -> dict[str, Any]:
    config = load(read_file(file), {}).config
    topics = Topics(bootstrap, (topic,))
    settings, warnings = job.cluster_settings(topics)
    assert warnings == []
    results = Results(spark, str(out))
    now_ms = time.time_ns() // 1_000_000
    summary = job.audit(spark, topics, results, config, policies_of(config, settings), now_ms, None, 5)
    report.write_report(results, summary)
    return summary


def violations_by(events: list[dict[str, Any]]) -> tuple[Counter[Any], Counter[Any]]:
    """Count batches and bad records by mode, reason and rule, and the batches that rehearsed bounds would reject."""
    found: Counter[Any] = Counter()
    tried: Counter[Any] = Counter()
    for event in events:
        for bound in event.get("rehearsed", ()):
            tried[bound["key"], bound["max_ms"]] += bound["bad_records"]
        if event["mode"] != "rehearse":
            for broken in event.get("rules", [{"rule": None, "bad_records": event["bad_records"]}]):
                key = (event["mode"], event["reason"], broken["rule"])
                found[*key, "batches"] += 1
                found[*key, "bad records"] += broken["bad_records"]
    return found, tried


@pytest.mark.long
def test_audit_figures_equal_those_of_an_observing_proxy_rule_by_rule(
    spark: SparkSession, kafka_bootstrap: str, observed_topic: tuple[str, ProxyProcess], tmp_path: Path
) -> None:
    topic, proxy = observed_topic
    events, tried = violations_by(proxy.violations_of(topic))

    summary = audit_topic(spark, kafka_bootstrap, topic, proxy.folder / "sluicegate.yaml", tmp_path)

    its = summary["topics"][topic]
    at_rest: Counter[Any] = Counter()
    for row in its["findings"]:
        at_rest[row["verdict"], row["reason"], row["rule"], "batches"] = row["batches"]
        at_rest[row["verdict"], row["reason"], row["rule"], "bad records"] = row["bad_records"]
    assert at_rest == events
    assert {key[2] for key in at_rest} == {None, *(rule["name"] for rule in RULES)}
    assert {(row["key"], row["max_ms"]): row["bad_records"] for row in its["rehearsed"]} == tried
    assert len(tried) == 3
    assert its["records"] == 2 * sum(len(records) for _, records, _ in batches_with_violations(0))
    assert sum(p["reported"] for p in its["producers"] if p["producer_id"] == 7000) == 2 * 5
    assert summary["not_validated"] == []


def test_audit_samples_include_offset_and_diagnosis(
    spark: SparkSession, kafka_bootstrap: str, observed_topic: tuple[str, ProxyProcess], tmp_path: Path
) -> None:
    topic, proxy = observed_topic

    summary = audit_topic(spark, kafka_bootstrap, topic, proxy.folder / "sluicegate.yaml", tmp_path)

    of_first = {
        (s["reason"], s["rule"], s["offset"]): s["diagnosis"] for s in summary["samples"] if s["partition"] == 0
    }
    assert "nanoseconds" in of_first["timestamp_in_future", None, 61]
    assert "seconds" in of_first["timestamp_too_old", None, 64]
    assert "rule tenant" in of_first["rule_violated", "tenant", 71]
    page = (tmp_path / "report.html").read_text()
    assert "would have been reported" in page
    assert "rule positive" in page


@pytest.mark.long  # unlike this file's short tests, it starts a Spark process for the command
def test_audit_reads_client_names_from_violation_events(
    spark: SparkSession, observed_topic: tuple[str, ProxyProcess], tmp_path: Path
) -> None:
    topic, proxy = observed_topic
    events, _ = violations_by(proxy.violations_of(topic))
    file = tmp_path / "events.jsonl"
    rejected = {**proxy.violations_of(topic)[0], "mode": "reject", "outcome": "rejected", "client_id": "elsewhere"}
    file.write_text(Path(proxy.config["violations"]["file"]).read_text() + json.dumps(rejected) + "\nno event\n")

    found = clients_of(spark, str(file), (topic,))[topic]

    reported: Counter[Any] = Counter()
    for row in found:
        if row["client_id"] == "raw":
            assert row["is_stored"]
            reported[row["mode"], row["reason"], row["rule"], "batches"] = row["batches"]
            reported[row["mode"], row["reason"], row["rule"], "bad records"] = row["bad_records"]
    assert reported == events
    assert [row["is_stored"] for row in found if row["client_id"] == "elsewhere"] == [False]


@pytest.mark.long
def test_the_audit_command_reports_what_would_be_rejected(
    kafka_bootstrap: str, observed_topic: tuple[str, ProxyProcess], tmp_path: Path
) -> None:
    topic, proxy = observed_topic
    asked = policies_of_modes("reject", tmp_path) | {"requests": [{"name": "all", "acks": ["all"]}]}
    asked |= {name: proxy.config[name] for name in ("upstream", "listen")}
    file = tmp_path / "policies.yaml"
    file.write_text(yaml.safe_dump(asked))
    about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"), "--policies", str(file))

    output = run("audit", *about, "--json", "--events", proxy.config["violations"]["file"])

    assert "warning: not validated: rules about requests (requests)" in output
    summary = json.loads(output[output.index("{") : output.rindex("}") + 1])
    verdicts = summary["topics"][topic]["verdicts"]
    # Four of a partition's 13 batches violate rejecting rules. All others except the first lack a key or have
    # decreasing times.
    assert {name: its["batches"] for name, its in verdicts.items() if its["batches"]} == {
        "good": 2 * 1,
        "reject": 2 * 4,
        "observe": 2 * 8,
    }
    assert summary["topics"][topic]["clients"][0]["client_id"] == "raw"
