"""A replay corrects each record that an audit listed, and writes it once."""

import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from sluicegate.pipeline import Replay, audit, plan_replay, replay
from sluicegate.pipeline.jobs.replay.listed_records import NoFindings
from sluicegate.pipeline.jobs.replay.progress import LISTED_GROUP, groups_of
from sluicegate.pipeline.source.topic_ids import TopicRecreated
from sluicegate.pipeline.source.topics import Topics
from tests.broker.eventually import eventually
from tests.integration.topics import create_topic
from tests.pipeline.commands import kill_once, run, summary
from tests.pipeline.polluted import DAY, HOUR, UNLIMITED
from tests.pipeline.replays import read_back, replay_progress, run_replay
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
NANOSECONDS = 1_000_000


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    """Return a topic without limits, so that the broker stores bad records."""
    return create_topic(kafka_bootstrap, UNLIMITED, 2, prefix="found")


def store_batch(bootstrap: str, topic: str, partition: int, records: Sequence[Rec]) -> None:
    """Send a batch to the broker directly."""
    with RawClient(bootstrap, timeout=120) as client:
        response = client.produce(9, [topic_data(topic, (partition, batch(records, LZ4)))])
    assert isinstance(response, dict)
    assert response["responses"][0]["partition_responses"][0]["error_code"] == 0, response


def policy_file(folder: Path, topic: str, **of_topic: Any) -> Path:
    """Write a configuration that allows timestamps on the topic up to an hour ahead."""
    file = folder / "sluicegate.yaml"
    output: dict[str, Any] = {"upstream": {"bootstrap": ["127.0.0.1:9"]}}
    output["listen"] = {"bootstrap": "127.0.0.1:9", "broker_port_base": 9}
    output["topics"] = [{"match": topic, "message.timestamp.after.max.ms": HOUR, **of_topic}]
    file.write_text(yaml.safe_dump(output))
    return file


def audit_topic(bootstrap: str, topic: str, file: Path, out: Path, samples: str = "all") -> Path:
    """Audit the topic with the command and return the results folder."""
    about = ("--bootstrap", bootstrap, "--topic", topic, "--policies", str(file), "--out", str(out))
    run("audit", *about, "--samples", samples)
    return out


def test_a_replay_of_findings_appends_corrected_records_after_an_audit(
    kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    now = time.time_ns() // 1_000_000
    own: list[tuple[bytes, bytes | None]] = [(b"trace", b"1"), (b"trace", None)]
    good, bad = Rec(now, b"k0", b"good"), Rec(now * NANOSECONDS, b"k1", b"one", own)
    store_batch(kafka_bootstrap, topic, 1, [good, bad])
    store_batch(
        kafka_bootstrap, topic, 0, [Rec((now + 1) * NANOSECONDS, None, None), Rec(now + DAY, b"k2", b"from tomorrow")]
    )
    file = policy_file(tmp_path, topic, mode="observe")
    found_in = audit_topic(kafka_bootstrap, topic, file, tmp_path / "validated")
    before = read_back(kafka_bootstrap, topic)
    out = tmp_path / "out"
    replay = ("replay", "--bootstrap", kafka_bootstrap, "--topic", topic, "--policies", str(file), "--fix", "unit")
    replay = (*replay, "--from-findings", str(found_in), "--out", str(out))

    output = run(*replay)

    assert output.startswith(f"2 of 3 listed records would be written back, 2 of them corrected: {topic} 2.\n")
    assert "1 remains where it is: timestamp_in_future 1; the table remaining gives the reasons.\n" in output
    assert read_back(kafka_bootstrap, topic) == before

    run(*replay, "--headers", "all", "--apply")

    back = read_back(kafka_bootstrap, topic)
    assert [each for each in back if each in before] == before
    zero, one = [each for each in back if each not in before]
    assert (zero.partition, zero.timestamp, zero.key, zero.value) == (0, now + 1, None, None)
    assert (one.partition, one.timestamp, one.key, one.value) == (1, now, b"k1", b"one")
    assert one.headers == [
        ("trace", b"1"),
        ("trace", None),
        ("sluicegate.origin", f"{topic}/1/1".encode()),
        ("sluicegate.reason", b"timestamp_in_future"),
        ("sluicegate.timestamp", str(now * NANOSECONDS).encode()),
    ]
    (remaining,) = summary(out)["remaining_records"]
    assert (remaining["topic"], remaining["partition"], remaining["offset"], remaining["before"]) == (
        topic,
        0,
        1,
        now + DAY,
    )

    again = run(*replay, "--apply", "--json")

    assert json.loads(again[again.index("{") : again.rindex("}") + 1])["written_by_this_run"] == 0
    assert read_back(kafka_bootstrap, topic) == back


def test_python_functions_replay_audit_findings(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    now, file = time.time_ns() // 1_000_000, policy_file(tmp_path, topic)
    store_batch(kafka_bootstrap, topic, 0, [Rec(now * NANOSECONDS, b"bad"), Rec(now, b"good")])
    listed = audit(spark, kafka_bootstrap, topic, tmp_path / "validated", file, samples=None)
    assert [(row["offset"], row["timestamp"]) for row in listed.samples.collect()] == [(0, now * NANOSECONDS)]

    proposal = plan_replay(
        spark, kafka_bootstrap, topic, tmp_path / "out", file, fix="unit", findings=tmp_path / "validated"
    )
    assert (proposal.summary["applied"], proposal.warnings) == (False, ())
    done = replay(spark, kafka_bootstrap, topic, tmp_path / "out", file, fix="unit", findings=tmp_path / "validated")

    assert isinstance(done, Replay)
    assert (done.summary["written_by_this_run"], done.remaining.count()) == (1, 0)
    assert [row.after for row in done.replays.collect()] == [now]
    assert [(each.key, each.timestamp) for each in read_back(kafka_bootstrap, topic)][-1] == (b"bad", now)
    with pytest.raises(ValueError, match="soon"):
        plan_replay(spark, kafka_bootstrap, topic, tmp_path / "out", file, fix="soon")


def test_a_later_list_replays_only_newer_records_with_a_warning(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    now, file = time.time_ns() // 1_000_000, policy_file(tmp_path, topic)
    store_batch(kafka_bootstrap, topic, 0, [Rec(now * NANOSECONDS, b"first")])
    first = audit_topic(kafka_bootstrap, topic, file, tmp_path / "first")
    run_replay(spark, kafka_bootstrap, topic, file, tmp_path / "a", fix="unit", findings=first)
    store_batch(kafka_bootstrap, topic, 0, [Rec(now * NANOSECONDS, b"second")])
    second = audit_topic(kafka_bootstrap, topic, file, tmp_path / "second")
    about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--policies", str(file), "--fix", "unit")

    output = run("replay", *about, "--from-findings", str(second), "--out", str(tmp_path / "b"), "--apply")

    assert f"{topic}-0: 1 listed records before offset 1 were handled by an earlier replay" in output
    times = [(each.key, each.timestamp) for each in read_back(kafka_bootstrap, topic)]
    written = [(b"first", now), (b"second", now)]
    assert Counter(times) == Counter([*written, *((key, now * NANOSECONDS) for key, _ in written)])


def test_audit_lists_exactly_the_bad_records_of_a_batch(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """There are more bad records than a proxy describes for one request (limits.max_record_errors), by several
    rules."""
    now, count = time.time_ns() // 1_000_000, 4_000
    rules = [{"name": "a", "value": {"max_size": 4}}, {"name": "b", "key": {"min_size": 2}}]
    file = policy_file(tmp_path, topic, rules=rules)
    records = [Rec(now, b"b" if i % 2 else b"k%d" % i, b"long value" if i % 4 else b"v") for i in range(count)]
    store_batch(kafka_bootstrap, topic, 0, records)
    found_in = audit_topic(kafka_bootstrap, topic, file, tmp_path / "validated")
    fixing = "tests.pipeline.corrections:shorten_value"

    found = run_replay(spark, kafka_bootstrap, topic, file, tmp_path / "out", by=fixing, findings=found_in)

    assert {(row["kept_for"], row["records"]) for row in found["replays"]} == {("rule a", count // 4)}
    assert {(row["kept_for"], row["records"]) for row in found["remaining"]} == {("rule a, b", count // 2)}
    behind = read_back(kafka_bootstrap, topic, 0)[count:]
    assert [each.key for each in behind] == [b"k%d" % i for i in range(2, count, 4)]
    assert {each.value for each in behind} == {b"long"}


def test_a_killed_replay_of_findings_writes_each_record_once_after_a_restart(
    kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    now, count = time.time_ns() // 1_000_000, 12_000
    for start in range(0, count, 3000):
        numbers = range(start, start + 3000)
        times = [(now + i) * NANOSECONDS if i % 3 else now + i for i in numbers]
        records = [Rec(at, b"%d" % i) for i, at in zip(numbers, times, strict=True)]
        store_batch(kafka_bootstrap, topic, start // 3000 % 2, records)
    file = policy_file(tmp_path, topic)
    found_in = audit_topic(kafka_bootstrap, topic, file, tmp_path / "validated")
    about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--policies", str(file), "--fix", "unit")
    replay = ("replay", *about, "--from-findings", str(found_in), "--out", str(tmp_path / "out"), "--apply")
    (group,) = groups_of(Topics(kafka_bootstrap, (topic,)), LISTED_GROUP).values()

    kill_once(lambda: any(replay_progress(kafka_bootstrap, group, topic, 2)), tmp_path, *replay)
    run(*replay)

    back = read_back(kafka_bootstrap, topic)
    bad = {i for i in range(count) if i % 3}
    corrected = [each for each in back if each.timestamp < now + DAY and int(each.key or b"") % 3]
    assert len(back) == count + len(bad)
    assert Counter(int(each.key or b"") for each in corrected) == dict.fromkeys(bad, 1)
    assert all(each.timestamp == now + int(each.key or b"") for each in corrected)


def test_deleted_records_and_invalid_batches_are_listed_as_remaining(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    now = time.time_ns() // 1_000_000
    file = policy_file(tmp_path, topic, **{"max.message.bytes": 1_000})
    for key in (b"gone", b"stays"):
        store_batch(kafka_bootstrap, topic, 0, [Rec(now * NANOSECONDS, key)])
    store_batch(kafka_bootstrap, topic, 0, [Rec(now, b"large", random.randbytes(2_000))])
    store_batch(kafka_bootstrap, topic, 1, [Rec(now * NANOSECONDS, b"all are gone")])
    found_in = audit_topic(kafka_bootstrap, topic, file, tmp_path / "validated")
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    for deleted in admin.delete_records([Place(topic, 0, 1), Place(topic, 1, 1)]).values():
        deleted.result(60)

    found = run_replay(spark, kafka_bootstrap, topic, file, tmp_path / "out", fix="unit", findings=found_in)

    remaining = {(row["partition"], row["offset"]): row["reason"] for row in found["remaining_records"]}
    missing = "no_longer_stored"
    assert remaining == {(0, 0): missing, (0, 2): "whole_batch_rejected", (1, 0): missing}
    assert [each.key for each in read_back(kafka_bootstrap, topic, 0)][-1] == b"stays"
    assert found["written_by_this_run"] == 1


def test_an_incomplete_or_unrelated_list_is_reported(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    store_batch(kafka_bootstrap, topic, 0, [Rec(time.time_ns(), b"k")] * 2)
    file = policy_file(tmp_path, topic)
    some = audit_topic(kafka_bootstrap, topic, file, tmp_path / "some", samples="1")
    listed = audit_topic(kafka_bootstrap, topic, file, tmp_path / "all")
    other = create_topic(kafka_bootstrap, UNLIMITED, 1)
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})

    for folder, name, reason in (
        (tmp_path / "nothing", topic, ".*nothing/summary.json does not exist: use the folder"),
        (some, topic, "kept only some records of each kind: run it again with --samples all"),
        (listed, other, f"the audit does not cover {other}, only {topic}"),
    ):
        with pytest.raises(NoFindings, match=reason):
            run_replay(spark, kafka_bootstrap, name, file, tmp_path / "out", findings=folder)
    admin.delete_topics([topic])[topic].result(60)
    eventually(lambda: topic not in admin.list_topics().topics, what="the topic to be gone")
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    eventually(lambda: stores_a_record(kafka_bootstrap, topic), what="a record in the new topic")
    with pytest.raises(TopicRecreated, match=rf"have since been deleted and recreated: {topic} .*\. Audit them again"):
        run_replay(spark, kafka_bootstrap, topic, file, tmp_path / "out", findings=listed)


def stores_a_record(bootstrap: str, topic: str) -> bool:
    """Return whether a record can be stored, which requires a leader of the topic."""
    with RawClient(bootstrap, timeout=120) as client:
        response = client.produce(9, [topic_data(topic, (0, batch([Rec(time.time_ns() // 1_000_000, b"k")])))])
    return isinstance(response, dict) and response["responses"][0]["partition_responses"][0]["error_code"] == 0
