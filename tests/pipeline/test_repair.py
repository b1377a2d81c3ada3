"""A repair of a polluted topic is run as a user runs it, and killed in the middle."""

import re
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline import plan_repair, repair
from sluicegate.pipeline.jobs.repair import job
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.plan import make_plan
from sluicegate.pipeline.jobs.repair.target import _collisions, group_of
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from tests.broker.eventually import eventually
from tests.integration.topics import create_topic
from tests.pipeline.commands import kill_once, run, summary
from tests.pipeline.polluted import HOUR, UNLIMITED, Polluter
from tests.pipeline.repairs import repair_topic, times_in, verify_clean_topic
from tests.pipeline.sparks_own import needs_sparks_own
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@needs_sparks_own
def test_sparks_own_source_reads_a_clean_topic(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms()).write(batches=100, span_ms=5 * HOUR)
    clean = f"{polluted.topic}-clean"
    out, about = tmp_path / "repair", ("--bootstrap", kafka_bootstrap, "--topic", polluted.topic)

    output = run("repair", *about, "--out", str(out))

    assert "dry run" in output
    assert output.startswith("0 valid-looking records would change.\n")
    assert clean not in topics_of(kafka_bootstrap)
    assert summary(out)["topics"][polluted.topic]["repaired"] == polluted.counts

    run("repair", *about, "--out", str(out), "--apply")

    assert summary(out)["written_by_this_run"] == polluted.records
    fresh = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka_bootstrap).option("subscribe", clean)
    times = (
        fresh.option("startingOffsets", "earliest")
        .load()
        .select("partition", f.expr("unix_millis(timestamp)").alias("at"))
    )
    found = times.collect()
    true_times: dict[int, list[int]] = {}
    for partition, true, _ in polluted.written:
        true_times.setdefault(partition, []).append(true)
    found_times: dict[int, list[int]] = {}
    for row in found:
        found_times.setdefault(row["partition"], []).append(row["at"])
    for partition, times_meant in true_times.items():
        # The estimated time is between the times of the neighbours, which are three minutes apart.
        away = [abs(a - b) for a, b in zip(sorted(times_meant), sorted(found_times[partition]), strict=True)]
        assert max(away) <= 180_000 + 60_000
    message = run("verify", *about, "--topic", clean, "--out", str(tmp_path / "verify"))
    assert "have the same records" in message
    assert summary(tmp_path / "verify")["repairs"] == polluted.counts

    run("repair", *about, "--out", str(out), "--apply")

    assert summary(out)["written_by_this_run"] == 0
    assert Topics(kafka_bootstrap, (clean,)).read(spark, "sluicegate", columns="offset").count() == polluted.records


def test_a_killed_repair_loses_and_repeats_no_record(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 2)
    now = now_ms()
    records = 0
    with RawClient(kafka_bootstrap) as client:
        for i in range(100):
            for partition in range(2):
                times = [now - HOUR + i * 1000 + j for j in range(4000)]
                written = [t * 1_000_000 if j % 50 == 3 else t for j, t in enumerate(times)]
                data = batch([Rec(t, b"%d" % (j % 9), b"%d %d" % (i, j)) for j, t in enumerate(written)], LZ4)
                client.produce(9, [topic_data(topic, (partition, data))])
                records += 4000
    clean = f"{topic}-clean"
    repair = ("repair", "--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"), "--apply")

    kill_once(lambda: 0 < sum(repair_progress(kafka_bootstrap, topic, clean)) < records, tmp_path, *repair)

    reached = sum(repair_progress(kafka_bootstrap, topic, clean))
    assert 0 < reached < records
    run(*repair)

    # The broker completes a transaction that was being committed when the repair was killed.
    assert 0 < summary(tmp_path / "out")["written_by_this_run"] <= records - reached
    rows = Topics(kafka_bootstrap, (clean,)).read(spark, "sluicegate", columns="partition,value").collect()
    assert len(rows) == records
    assert set(Counter((row["partition"], bytes(row["value"])) for row in rows).values()) == {1}
    assert verify_clean_topic(spark, kafka_bootstrap, topic, tmp_path / "v")["repairs"] == {
        "nanoseconds": records // 50
    }


def test_a_deleted_clean_topic_is_written_again(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=20, span_ms=HOUR)
    clean = f"{polluted.topic}-clean"
    repair_topic(spark, kafka_bootstrap, polluted.topic, tmp_path / "first")
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    (deleted,) = admin.delete_topics([clean]).values()
    deleted.result(30)
    eventually(lambda: clean not in topics_of(kafka_bootstrap), 30, "the clean topic to be gone")

    again = repair_topic(spark, kafka_bootstrap, polluted.topic, tmp_path / "second")

    assert again["written_by_this_run"] == polluted.records
    assert Topics(kafka_bootstrap, (clean,)).read(spark, "sluicegate", columns="offset").count() == polluted.records


def test_a_repair_keeps_and_lists_times_of_a_partition_without_a_clock(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """In one partition no record has a plausible time, so the append time of its future record is unknown. In the other
    a time in nanoseconds shows it.
    """
    topic = create_topic(kafka_bootstrap, UNLIMITED, 2)
    ahead, nanoseconds = now_ms() + 30 * 24 * HOUR, time.time_ns()
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(ahead)])))])
        client.produce(9, [topic_data(topic, (1, batch([Rec(ahead), Rec(nanoseconds)])))])

    found = repair_topic(spark, kafka_bootstrap, topic, tmp_path)["topics"][topic]

    assert (found["repaired"], found["undiagnosed"]) == ({"future": 1, "nanoseconds": 1}, {"future": 1})
    rows = Topics(kafka_bootstrap, (f"{topic}-clean",)).read(spark, "sluicegate", columns="offset,timestamp").collect()
    assert sorted(row["timestamp"] for row in rows) == [nanoseconds // 1_000_000] * 2 + [ahead]
    (left,) = spark.read.parquet(str(tmp_path / "undiagnosed")).collect()
    assert (left["offset"], left["damage"], left["before"]) == (0, "future", ahead)


def test_existing_plan_is_reused_only_with_equal_rules(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=5, span_ms=HOUR)
    topics, results = Topics(kafka_bootstrap, (polluted.topic,)), Results(spark, str(tmp_path))
    targets, rules = {polluted.topic: "clean"}, Rules(now_ms(), HOUR, frozenset({"zero"}))

    plan = job.write_plan(spark, topics, results, targets, rules)

    later = replace(rules, now_ms=rules.now_ms + 5)
    kept = job.kept_plan(results, targets, later)
    assert kept is not None
    assert (kept.rules, [each.source for each in kept.partitions]) == (rules, [each.source for each in plan.partitions])
    assert job.kept_plan(results, targets, replace(later, keep=frozenset())) is None
    results.write_text(job.PLAN, replace(plan, begun=True).as_json())
    with pytest.raises(job.RepairBegun, match="begun with other"):
        job.kept_plan(results, targets, replace(later, assume_ms=1))
    with pytest.raises(job.RepairBegun, match="has already begun in"):
        job.write_plan(spark, topics, results, targets, later)
    with pytest.raises(job.RepairBegun, match=f"is for {polluted.topic} to clean"):
        job.kept_plan(results, {polluted.topic: "other"}, later)


def test_does_not_write_to_topic_with_foreign_records(kafka_bootstrap: str, tmp_path: Path) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=20, span_ms=HOUR)
    other = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=20, span_ms=HOUR)
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluted.topic, "--to", other.topic)

    dry = run("repair", *about, "--out", str(tmp_path), status=1)
    output = run("repair", *about, "--out", str(tmp_path), "--apply", status=1)

    assert f"This would stop --apply: {other.topic} has records that no repair wrote" in dry
    assert f"{other.topic} has records that no repair wrote" in output


@pytest.mark.parametrize(
    ("there", "settings", "obstacle"),
    [
        ("{topic}_clean", {}, "{clean} cannot be used: .*collides"),
        ("{clean}", {"partitions": 3}, "{clean} has 3 partitions and {topic} 1; the order of records would change"),
        (
            "{clean}",
            {"message.timestamp.before.max.ms": "60000"},
            "{clean} has message.timestamp.before.max.ms=60000, and would reject records of {topic} whose times are",
        ),
        ("{clean}", {"message.timestamp.type": "LogAppendTime"}, "{clean} has message.timestamp.type=LogAppendTime"),
    ],
)
def test_a_dry_run_reports_a_clean_topic_that_apply_could_not_write(
    spark: SparkSession,
    kafka_bootstrap: str,
    tmp_path: Path,
    there: str,
    settings: dict[str, Any],
    obstacle: str,
) -> None:
    """In the first case a topic exists whose name collides with the clean topic's name, as brokers see it."""
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=20, span_ms=HOUR)
    names = {"topic": polluted.topic, "clean": f"{polluted.topic}.clean"}
    config = {name: value for name, value in settings.items() if name != "partitions"}
    topic = NewTopic(there.format(**names), settings.get("partitions", 1), 1, config=config)
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    (made,) = admin.create_topics([topic]).values()
    made.result(30)

    found = plan_repair(spark, kafka_bootstrap, polluted.topic, tmp_path, to="{topic}.clean")

    (message,) = found.obstacles
    assert re.search(obstacle.format(**names), message)
    with pytest.raises(CannotWriteTopic, match="nothing was written"):
        repair(spark, kafka_bootstrap, polluted.topic, tmp_path, to="{topic}.clean")


def test_clean_topics_that_collide_with_each_other_are_obstacles() -> None:
    plan = make_plan([], {"a.b": "a.b-clean", "a_b": "a_b-clean", "c": "c-clean"}, {}, Rules(now_ms(), HOUR))

    (message,) = _collisions(plan.targets.values())

    assert message.startswith("a.b-clean and a_b-clean collide")


def test_dry_run_reports_obstacles_to_apply(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    """One partition has only timestamps of 0, the other is valid."""
    topic, now = create_topic(kafka_bootstrap, UNLIMITED, 2), now_ms()
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(now - HOUR + i) for i in range(50)])))])
        client.produce(9, [topic_data(topic, (1, batch([Rec(0)] * 30)))])
    about = ("repair", "--bootstrap", kafka_bootstrap, "--topic", topic, "--out")

    dry = run(*about, str(tmp_path / "a"), status=1)

    reason = f"{topic}-1: 30 records, the first at offset 0, would keep a timestamp of 0"
    assert dry.startswith(
        "0 valid-looking records would change.\n0 invalid timestamps would change, of 80 records in all.\n"
    )
    assert f"This would stop --apply: {reason}" in dry
    assert reason in summary(tmp_path / "a")["obstacles"][0]
    results = Results(spark, str(tmp_path / "a"))
    plan = job.kept_plan(results, {topic: f"{topic}-clean"}, Rules(now_ms(), HOUR))
    assert plan is not None
    topics = Topics(kafka_bootstrap, (topic,))
    listing = job.list_changes(spark, topics, results, plan)
    with pytest.raises(CannotWriteTopic, match=reason):
        job.write_clean_topics(spark, topics, results, plan, listing)
    assert f"{topic}-clean" not in topics_of(kafka_bootstrap)

    done = repair_topic(spark, kafka_bootstrap, topic, tmp_path / "a", assume_ms=now - HOUR)

    assert done["written_by_this_run"] == 80


@pytest.mark.parametrize("away", [1, -1])
def test_rejects_partition_that_differs_from_the_plan(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, away: int
) -> None:
    """Whatever the reason is, the partition is not marked as done, so the next run writes it."""
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=5, span_ms=HOUR)
    topics, results = Topics(kafka_bootstrap, (polluted.topic,)), Results(spark, str(tmp_path))
    plan = job.write_plan(spark, topics, results, {polluted.topic: f"t-{polluted.topic}"}, Rules(now_ms(), HOUR))
    listing = job.list_changes(spark, topics, results, plan)
    (whole,) = plan.partitions
    counted = replace(whole.contents, records=whole.contents.records + away)
    other = replace(plan, partitions=(replace(whole, contents=counted),))

    with pytest.raises(
        PySparkException, match=f"counted {counted.records} records .*, and {polluted.records} were read"
    ):
        job.write_clean_topics(spark, topics, results, other, listing)

    assert (
        sum(each.records for each in job.write_clean_topics(spark, topics, results, plan, listing)) == polluted.records
    )


def test_aborted_transaction_of_earlier_run_does_not_block_the_next(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """The previous run ended in its first transaction, which was aborted. So the topic has offsets but no records."""
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=5, span_ms=HOUR)
    to = f"{polluted.topic}-clean"
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    admin.create_topics([NewTopic(to, 1)])[to].result(60)
    begun = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": to})
    begun.init_transactions(60)
    begun.begin_transaction()
    begun.produce(to, b"lost")
    assert begun.flush(60) == 0
    begun.abort_transaction(60)

    done = repair_topic(spark, kafka_bootstrap, polluted.topic, tmp_path)

    assert done["written_by_this_run"] == polluted.records


def test_rejects_second_plan_for_a_begun_clean_topic(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=10, span_ms=HOUR)
    repair_topic(spark, kafka_bootstrap, polluted.topic, tmp_path / "a")

    with pytest.raises(CannotWriteTopic, match=f"{polluted.topic}-clean was begun by another plan"):
        repair_topic(spark, kafka_bootstrap, polluted.topic, tmp_path / "b", keep=frozenset({"seconds"}))

    clean = times_in(spark, kafka_bootstrap, f"{polluted.topic}-clean")
    assert 0 not in clean.values()


def group_of_topic(bootstrap: str, topic: str) -> str | None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (future,) = admin.describe_topics(TopicCollection([topic])).values()
    try:
        return group_of(topic, str(future.result(30).topic_id))
    except KafkaException:
        return None  # the topic does not exist yet


def topics_of(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics)


def repair_progress(bootstrap: str, topic: str, clean: str) -> list[int]:
    """Return the offset in the source that the repair of each partition has reached."""
    group = group_of_topic(bootstrap, clean)
    if group is None:
        return [0, 0]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(topic, p) for p in range(2)], timeout=30)
    finally:
        consumer.close()
    return [0 if place.offset == OFFSET_INVALID else place.offset for place in found]


def test_apply_creates_no_topic_if_all_timestamps_are_valid(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(now_ms() + i, b"k", b"v") for i in range(50)], LZ4)))])
    about = ("repair", "--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"))

    dry, applied = run(*about), run(*about, "--apply")

    for output in (dry, applied):
        assert "Nothing: all timestamps are valid. Even with --apply, no clean topic" in output
        assert "left unchanged" not in output
    assert summary(tmp_path / "out")["applied"] is False
    assert f"{topic}-clean" not in topics_of(kafka_bootstrap)


def test_full_disk_at_start_of_writing_creates_no_topic(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=20, span_ms=HOUR)
    topics, results = Topics(kafka_bootstrap, (polluted.topic,)), Results(spark, str(tmp_path))
    clean = f"{polluted.topic}-clean"
    plan = job.write_plan(spark, topics, results, {polluted.topic: clean}, Rules(now_ms(), HOUR))
    listing = job.list_changes(spark, topics, results, plan)

    def is_full(results: Results, name: str, text: str) -> None:
        raise OSError(28, "No space left on device", name)

    monkeypatch.setattr(Results, "create_text", is_full)
    with pytest.raises(OSError, match="No space left"):
        job.write_clean_topics(spark, topics, results, plan, listing)

    assert clean not in topics_of(kafka_bootstrap)
    monkeypatch.undo()
    assert (
        sum(each.records for each in job.write_clean_topics(spark, topics, results, plan, listing)) == polluted.records
    )
