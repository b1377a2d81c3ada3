"""The job `verify` distinguishes equal topics from different ones."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.jobs.verify.job import DIFFERENCES, PlanMismatch, plan_in, verify
from sluicegate.pipeline.jobs.verify.repairs import out_of_bounds
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.integration.topics import create_topic
from tests.pipeline.polluted import DAY, UNLIMITED
from tests.pipeline.repairs import now_ms, repair_topic, verify_clean_topic
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
NANOSECONDS = 1_764_000_000_000_000_000
Row = dict[str, Any]


def written_rows() -> list[Row]:
    return [
        {"key": f"k{i % 7}", "value": f"v{i}", "timestamp": 1_764_000_000_000 + i, "partition": i % 7 % 3}
        for i in range(300)
    ] + [{"key": None, "value": "same", "timestamp": 1_764_000_000_000, "partition": 0}] * 3


def topic_with_records(bootstrap: str, records: list[Row], partitions: int = 3) -> str:
    topic = create_topic(bootstrap, UNLIMITED, partitions)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(30) == 0
    return topic


def verify_records(
    spark: SparkSession, bootstrap: str, folder: Path, left: list[Row], right: list[Row]
) -> dict[str, Any]:
    source, target = topic_with_records(bootstrap, left), topic_with_records(bootstrap, right)
    return verify(spark, Topics(bootstrap, (source,)), target, Results(spark, str(folder)), now_ms())


def test_verify_finds_no_difference_between_copies(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    found = verify_records(spark, kafka_bootstrap, tmp_path, written_rows(), written_rows())

    assert found["same"]
    assert found["records"] == {"source": 303, "target": 303}


def test_records_in_other_partitions_differ_only_if_order_within_a_key_changes(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    elsewhere = [{**row, "partition": (row["partition"] + 1) % 3} for row in written_rows()]

    assert verify_records(spark, kafka_bootstrap, tmp_path, written_rows(), elsewhere)["same"]


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        (lambda r: r[:100] + r[101:], {"missing": 1}),
        (lambda r: [*r, r[5]], {"added": 1}),
        (lambda r: [*r[:50], {**r[50], "value": "other"}, *r[51:]], {"missing": 1, "added": 1}),
        (lambda r: [*r[:50], {**r[50], "timestamp": 5}, *r[51:]], {"missing": 1, "added": 1}),
        (lambda r: [*r[:50], {**r[50], "headers": [("a", b"")]}, *r[51:]], {"missing": 1, "added": 1}),
        (lambda r: [*r[:50], {**r[50], "value": None}, *r[51:]], {"missing": 1, "added": 1}),
        (lambda r: [*r[:7], r[14], *r[8:14], r[7], *r[15:]], {"out of order": 2}),
        (lambda r: r[:-1], {"missing": 1}),
    ],
)
def test_verify_reports_each_kind_of_difference(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, change: Any, differences: dict[str, int]
) -> None:
    found = verify_records(spark, kafka_bootstrap, tmp_path, written_rows(), change(written_rows()))

    assert not found["same"]
    assert {what: count for what, count in found["differences"].items() if count} == differences
    assert len(found["samples"]) == sum(differences.values())


@pytest.mark.parametrize(
    ("damage", "before", "after", "wrong"),
    [
        ("nanoseconds", NANOSECONDS, NANOSECONDS // 1_000_000, 0),
        ("nanoseconds", NANOSECONDS, NANOSECONDS // 1_000_000 + 1, 1),
        ("zero", -5, 1_764_000_000_100, 0),
        ("zero", -5, 315_532_800_000, 1),  # 1980
        ("future", 1_964_000_000_000, 1_764_000_000_100, 0),
        ("future", 1_964_000_000_000, 1_784_000_000_000, 1),  # half a year older than all other times
    ],
)
def test_verify_recalculates_each_declared_repair(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, damage: str, before: int, after: int, wrong: int
) -> None:
    bad = {"key": "k", "value": "v", "timestamp": before, "partition": 0}
    source = topic_with_records(kafka_bootstrap, [bad, *written_rows()])
    message = repair_headers(source, damage, before)
    target = topic_with_records(kafka_bootstrap, [{**bad, "timestamp": after, "headers": message}, *written_rows()])

    found = verify(spark, Topics(kafka_bootstrap, (source,)), target, Results(spark, str(tmp_path)), now_ms())

    assert found["repairs"] == {damage: 1}
    assert found["differences"] == {"missing": 0, "added": 0, "out of order": 0, "repaired wrongly": wrong}
    place = {"source_partition": 0, "source_offset": 0, "target_partition": 0, "target_offset": 0}
    assert found["samples"] == [{"what": "repaired wrongly", **place}] * wrong
    assert (tmp_path / DIFFERENCES).exists() is (wrong == 1)
    assert found["same"] is (wrong == 0)


def repair_headers(source: str, damage: str, before: int) -> list[tuple[str, bytes]]:
    return [
        ("sluicegate.origin", f"{source}/0/0".encode()),
        ("sluicegate.timestamp", str(before).encode()),
        ("sluicegate.repair", damage.encode()),
    ]


OWN = [
    [("sluicegate.timestamp", b"yesterday")],
    [("sluicegate.repair", b"by hand")],
    [("sluicegate.origin", b"x/0/0"), ("sluicegate.timestamp", b"soon"), ("sluicegate.repair", b"zero")],
]


@pytest.mark.parametrize("headers", OWN)
def test_a_repair_keeps_a_records_own_headers(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, headers: Any
) -> None:
    """Headers of any name are kept, in repaired and in copied records."""
    valid, bad = 1_764_000_000_000, 1_764_000_000_000_000_000
    records = [
        {"value": str(i), "timestamp": t, "partition": 0, "headers": headers} for i, t in enumerate([valid, bad])
    ]
    topic = topic_with_records(kafka_bootstrap, records, partitions=1)

    repair_topic(spark, kafka_bootstrap, topic, tmp_path / "repair")

    found = verify_clean_topic(spark, kafka_bootstrap, topic, tmp_path / "verify")
    assert (found["same"], found["repairs"]) == (True, {"nanoseconds": 1})


def test_records_of_an_earlier_repair_are_copies_unless_repaired_again(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """This happens if a clean topic replaces its source under the same name."""
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    before = repair_headers(topic, "zero", -5)
    times = [1_764_000_000_000, NANOSECONDS, 1_764_000_000_002, NANOSECONDS]
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    for i, time in enumerate(times):
        producer.produce(topic, str(i), timestamp=time, headers=before if i < 2 else None)
    assert producer.flush(30) == 0

    repair_topic(spark, kafka_bootstrap, topic, tmp_path / "repair")

    found = verify_clean_topic(spark, kafka_bootstrap, topic, tmp_path / "verify")
    assert (found["same"], found["differences"]["repaired wrongly"]) == (True, 0)
    assert found["repairs"] == {"nanoseconds": 2}


def test_a_record_written_back_to_its_source_is_not_a_repair(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """Two records of the target are equal, including their headers; one was repaired, the other copied."""
    bad, valid = ({"value": "v", "timestamp": t, "partition": 0} for t in (NANOSECONDS, NANOSECONDS // 1_000_000 + 1))
    source = topic_with_records(kafka_bootstrap, [bad, valid], partitions=1)
    fixed = {
        **bad,
        "timestamp": NANOSECONDS // 1_000_000,
        "headers": repair_headers(source, "nanoseconds", NANOSECONDS),
    }
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    producer.produce(source, **fixed)
    assert producer.flush(30) == 0
    whole, less = (topic_with_records(kafka_bootstrap, rows, 1) for rows in ([fixed, valid, fixed], [fixed, fixed]))
    topics, results = Topics(kafka_bootstrap, (source,)), Results(spark, str(tmp_path))

    same, differs = (verify(spark, topics, target, results, now_ms()) for target in (whole, less))

    assert (same["same"], same["repairs"]) == (True, {"nanoseconds": 1})
    assert differs["repairs"] == {"nanoseconds": 1}
    assert {what: count for what, count in differs["differences"].items() if count} == {"missing": 1}


def test_a_header_name_that_is_not_utf_8_is_compared_by_its_bytes(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """To clients, the name and its replacement look the same. A repair leaves out such records on request."""
    topics = [create_topic(kafka_bootstrap, UNLIMITED, 1) for _ in range(2)]
    with RawClient(kafka_bootstrap) as client:
        for topic, name in zip(topics, (b"\xff\xfe", "\ufffd\ufffd".encode()), strict=True):
            data = batch([Rec(1_764_000_000_000), Rec(1_764_000_000_001, headers=[(name, b"1")])])
            client.produce(9, [topic_data(topic, (0, data))])
    source = Topics(kafka_bootstrap, (topics[0],))

    found = verify(spark, source, topics[1], Results(spark, str(tmp_path)), now_ms())

    assert (found["differences"]["missing"], found["differences"]["added"]) == (1, 1)
    assert verify(spark, source, topics[0], Results(spark, str(tmp_path)), now_ms())["same"]


def test_verify_with_a_plan_ignores_records_after_the_plan(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    now = now_ms()
    times = [0 if i % 10 == 5 else now - 100_000 + i * 1000 for i in range(100)]
    topic = create_topic(kafka_bootstrap, UNLIMITED, 2)
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(time) for time in times])))])
    repair_topic(spark, kafka_bootstrap, topic, tmp_path / "repair")
    with RawClient(kafka_bootstrap) as client:
        for partition in range(2):
            client.produce(9, [topic_data(topic, (partition, batch([Rec(now)])))])
    topics, results = Topics(kafka_bootstrap, (topic,)), Results(spark, str(tmp_path / "verify"))
    plan = plan_in(Results(spark, str(tmp_path / "repair")), topic, f"{topic}-clean")

    found = verify(spark, topics, f"{topic}-clean", results, now, plan)

    assert (found["same"], found["repairs"]) == (True, {"zero": 10})
    assert verify(spark, topics, f"{topic}-clean", results, now)["differences"]["missing"] == 2
    others = replace(plan, partitions=tuple(replace(p, clock=Clock.fixed_at(now)) for p in plan.partitions))
    assert verify(spark, topics, f"{topic}-clean", results, now, others)["differences"]["repaired wrongly"] == 10
    with pytest.raises(PlanMismatch, match=f"is for {topic} to {topic}-clean"):
        plan_in(Results(spark, str(tmp_path / "repair")), topic, "other")


def test_small_partitions_share_tasks(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting a task costs as much as reading thousands of records. The offsets of each topic are requested once."""
    records = [{"value": str(i), "timestamp": 1_764_000_000_000, "partition": i % 60} for i in range(300)]
    source, target = (topic_with_records(kafka_bootstrap, records, partitions=60) for _ in range(2))
    asked: list[str] = []
    ranges = Topics.ranges

    def record_and_read_ranges(topics: Topics) -> list[OffsetRange]:
        asked.extend(topics.names)
        return ranges(topics)

    monkeypatch.setattr(Topics, "ranges", record_and_read_ranges)
    spark.sparkContext.setJobGroup(target, "compares")

    found = verify(spark, Topics(kafka_bootstrap, (source,)), target, Results(spark, str(tmp_path)), now_ms())

    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(target)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    tasks = [stage.numTasks for stage in stages if stage is not None]
    assert (found["same"], found["records"]["target"]) == (True, 300)
    assert max(tasks) == 4 * spark.sparkContext.defaultParallelism
    assert sum(tasks) < 60
    assert asked == [source, target]


def test_estimated_times_out_of_bounds_are_counted_over_all_partitions(spark: SparkSession) -> None:
    """Spark's planner cannot handle an expression with one condition for each of a thousand partitions."""
    valid = 1_764_000_000_000
    ours = spark.range(1000).selectExpr(
        *("cast(id as int) AS partition", "id AS offset", "0 AS origin_partition", "id AS origin_offset"),
        "'zero' AS repair",
        f"if(id % 4 = 0, {valid}, {valid + DAY}) AS timestamp",
    )
    message = {"earliest": valid, "latest": valid}
    blocks = [
        {"place": (p, 0), "least": time, "most": time} | message
        for p in range(1000)
        for time in [valid if p % 4 == 0 else valid + DAY]
    ]

    outside = out_of_bounds(ours, blocks, now_ms())
    assert outside is not None
    assert outside.count() == 750
