"""Each violation event is counted exactly once, whatever interrupts the job."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from sluicegate.pipeline.jobs.violations import job
from sluicegate.pipeline.jobs.violations.events import events_from_files
from sluicegate.pipeline.runs.results import Results
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_produce import bad_batch_now
from tests.integration.topics import UNVALIDATED, VALIDATED, create_topic
from tests.pipeline.commands import kill_once, run, summary
from tests.pipeline.events import ship_events, violation_event_row
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


def message_counts(spark: SparkSession, out: Path) -> Counter[str]:
    return Counter(row["message"] for row in spark.read.parquet(str(out / "events")).collect())


def test_a_killed_violations_run_loses_and_repeats_no_event(spark: SparkSession, tmp_path: Path) -> None:
    count = ship_events(tmp_path / "shipped", files=24, a_file=50)
    out = tmp_path / "out"
    command = ("violations", "--events", str(tmp_path / "shipped"), "--out", str(out), "--batch", "2")

    kill_once(lambda: len(list(out.glob("windows/batch=*/_SUCCESS"))) >= 4, tmp_path, *command)

    assert not (out / "summary.json").exists()
    run(*command)

    found = message_counts(spark, out)
    assert len(found) == count
    assert set(found.values()) == {1}
    reported = summary(out)
    assert reported["events"] == count
    assert sum(offender["events"] for offender in reported["offenders"]) == count
    assert sum(offender["bad_records"] for offender in reported["offenders"]) == 2 * count


def test_a_second_run_processes_newer_events_and_late_ones(spark: SparkSession, tmp_path: Path) -> None:
    source, out = tmp_path / "shipped", tmp_path / "out"
    source.mkdir()
    command = ("violations", "--events", str(source), "--out", str(out), "--window", "10 minutes")
    (source / "a").write_text(
        json.dumps(violation_event_row(1, 40)) + "\n" + json.dumps(violation_event_row(2, 12)) + "\nno event\n"
    )
    run(*command)
    assert summary(out)["grown_files"] == []
    (source / "b").write_text(
        json.dumps(violation_event_row(3, 13)) + "\n" + json.dumps(violation_event_row(4, 39)) + "\n"
    )
    with (source / "a").open("a") as growing:
        growing.write(json.dumps(violation_event_row(5, 41)) + "\n")
    output = run(*command)

    assert message_counts(spark, out) == Counter(f"number {n}" for n in (1, 2, 3, 4))
    reported = summary(out)
    assert (reported["bad_lines"], reported["late_events"], reported["windows"]) == (1, 1, 3)
    assert "billing" in output
    assert reported["grown_files"] == [f"file:{source}/a"]
    assert f"warning: file:{source}/a has grown since it was read" in output
    lines = [row["line"] for row in spark.read.parquet(str(out / "bad_lines")).collect()]
    assert lines == ["no event"]


def test_follow_processes_each_batch_once_into_few_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, every_seconds, seen, read = 4, 2, list[int](), list[str]()
    count = ship_events(tmp_path / "shipped", files, a_file=5)
    results = Results(spark, str(tmp_path / "out"))
    read_table = Results.read_table

    def record_and_read_table(results: Results, name: str) -> DataFrame:
        read.append(name)
        return read_table(results, name)

    monkeypatch.setattr(Results, "read_table", record_and_read_table)
    pace: dict[str, Any] = {"follow": True, "every_seconds": every_seconds}
    pace["after_batch"] = lambda totals: seen.append(totals.events)
    events = events_from_files(spark, str(tmp_path / "shipped"), 1)
    following = Thread(target=job.run, args=(events, results, "5 minutes", 600), kwargs=pace)
    following.start()
    eventually(lambda: [q for q in spark.streams.active if len(batch_start_times(q)) == files], 120, "all batches")
    (query,) = spark.streams.active
    begun = batch_start_times(query)
    query.stop()
    following.join(60)

    assert seen == [count // files * number for number in range(1, files + 1)]
    assert read == []
    written = [file.parent.parent.name for file in (tmp_path / "out").glob("*/batch=*/*.parquet")]
    assert (Counter(written)["windows"], Counter(written)["bad_lines"]) == (files, files)
    assert len({int(at.timestamp()) // every_seconds for at in begun}) == files


def batch_start_times(query: StreamingQuery) -> list[datetime]:
    """Return the start time of each batch with input."""
    return [datetime.fromisoformat(reported.timestamp) for reported in query.recentProgress if reported.numInputRows]


def test_rejections_are_read_in_both_formats_with_all_fields(spark: SparkSession, tmp_path: Path) -> None:
    source, out = tmp_path / "shipped", tmp_path / "out"
    source.mkdir()
    bound = {"key": "message.timestamp.after.max.ms", "value": 3_600_000, "source": "configuration"}
    rules = [{"rule": "keyed", "bad_records": 2}]
    rejected = violation_event_row(0, 1, owner={"team": "payments", "contact": None}, bound=bound, rules=rules)
    others = [
        violation_event_row(n, 1, outcome=outcome) for n, outcome in enumerate(("accepted", "resend", "unknown"), 2)
    ]
    events = [{"specversion": "1.0", "id": "a-1", "data": rejected}, violation_event_row(1, 1), *others]
    (source / "a").write_text("".join(json.dumps(each) + "\n" for each in events))

    run("violations", "--events", str(source), "--out", str(out), "--window", "10 minutes")

    rows = {row["message"]: row for row in spark.read.parquet(str(out / "events")).collect()}
    assert rows.keys() == {"number 0", "number 1"}
    assert rows["number 0"]["owner"]["team"] == "payments"
    assert rows["number 0"]["bound"]["value"] == "3600000"
    assert [each.asDict() for each in rows["number 0"]["rules"]] == rules


def test_violations_are_counted_from_events_in_a_topic(
    spark: SparkSession, kafka_bootstrap: str, proxy: ProxyProcess, tmp_path: Path
) -> None:
    rejected = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        for _ in range(5):
            client.produce(9, [topic_data(rejected, (0, bad_batch_now()))])
    lines = proxy.wait_for_violations(rejected, 5)
    topic = create_topic(kafka_bootstrap, VALIDATED, 2)
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    for line in lines:
        producer.produce(topic, json.dumps(line))
    assert producer.flush(30) == 0

    run("violations", "--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path), "--batch", "2")

    reported = summary(tmp_path)
    assert reported["events"] == len(lines) == 5
    assert reported["bad_lines"] == 0
    (offender,) = reported["offenders"]
    assert (offender["topic"], offender["events"]) == (rejected, 5)


@pytest.mark.parametrize("arguments", [(), ("--events", "x", "--bootstrap", "h:1", "--topic", "t")])
def test_rejects_missing_or_multiple_event_sources(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert "no events: use" in run("violations", *arguments, "--out", str(tmp_path), status=1)
