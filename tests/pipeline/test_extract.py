"""Timestamp extractors agree with those of Kafka Streams, record by record, and Spark can use the result."""

import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.extract import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    TimestampExtractor,
    TooLate,
    UsePreviousTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
    job,
    with_event_time,
)
from sluicegate.pipeline.jobs.extract.built_in import BuiltInExtractor
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.validation.units import in_milliseconds, unit_of
from tests.integration.topics import create_topic
from tests.oracle.java_program import java_command
from tests.pipeline.commands import run, summary
from tests.pipeline.polluted import UNLIMITED
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
STREAMS = Path(__file__).parent / "streams" / "EventTimes.java"
JARS = Path(__file__).parent.parent.parent / ".streams"
KAFKAS = "org.apache.kafka.streams.processor."
PARTITIONS = 3
NOW = 1_764_000_000_000
Times = dict[tuple[int, int], int]


def stream_of_records(bootstrap: str, first_are_valid: bool = True) -> tuple[str, list[tuple[int, int]]]:
    """Write three partitions with rising and falling times, some of them negative or 0; the last value in each is
    "end".

    Returns the topic and the places of the negative times.
    """
    topic, chance = create_topic(bootstrap, UNLIMITED, PARTITIONS), random.Random(93)
    negative: list[tuple[int, int]] = []
    with RawClient(bootstrap) as client:
        for partition in range(PARTITIONS):
            for number in range(6):
                times = [
                    chance.choice([NOW + i * 1000 - chance.randrange(5000)] * 4 + [-1, -chance.randrange(9**9), 0])
                    for i in range(number * 50, number * 50 + 50)
                ]
                if number == 0:
                    times[0] = NOW if first_are_valid else -1
                negative += [(partition, number * 50 + i) for i, t in enumerate(times) if t < 0]
                client.produce(9, [topic_data(topic, (partition, batch([Rec(t) for t in times])))])
            client.produce(9, [topic_data(topic, (partition, batch([Rec(NOW, value=b"end")])))])
    return topic, negative


def times_by_kafka_streams(bootstrap: str, topic: str, extractor: str, folder: Path) -> tuple[Times, str | None]:
    message = subprocess.run(
        [*java_command(JARS, str(STREAMS)), bootstrap, topic, str(PARTITIONS), KAFKAS + extractor, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = message.stdout.splitlines()
    failure = next((line.removeprefix("failed ") for line in lines if line.startswith("failed ")), None)
    found = [tuple(int(n) for n in line.split()) for line in lines if not line.startswith("failed ")]
    return {(partition, offset): at for partition, offset, at in found}, failure


def read_stream(spark: SparkSession, bootstrap: str, topic: str, limit: int) -> DataFrame:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    columns = "topic,partition,offset,timestamp,key,value,headers"
    limits = {"maxOffsetsPerTrigger": str(limit), "trigger": "processingTime"}
    return spark.readStream.format("sluicegate").options(**options, **limits, columns=columns).load()


def extract_with_spark(frame: DataFrame, folder: Path, extractor: TimestampExtractor) -> Any:
    """Extract all existing records into files; resumes after an earlier run."""
    query = (
        with_event_time(frame, extractor)
        .writeStream.format("parquet")
        .option("path", str(folder / "data"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        return query.recentProgress
    finally:
        query.stop()


def times_in(spark: SparkSession, folder: Path) -> Times:
    rows = spark.read.parquet(str(folder / "data")).select(
        "partition", "offset", f.expr("unix_millis(event_time) AS at")
    )
    return {(row["partition"], row["offset"]): row["at"] for row in rows.collect()}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LogAndSkipOnInvalidTimestamp(), "LogAndSkipOnInvalidTimestamp"),
        (UsePreviousTimeOnInvalidTimestamp(), "UsePartitionTimeOnInvalidTimestamp"),
    ],
)
def test_each_record_has_the_time_that_kafka_streams_gives_it(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, ours: TimestampExtractor, theirs: str
) -> None:
    topic, negative_ones = stream_of_records(kafka_bootstrap)
    negative = len(negative_ones)
    expected, failure = times_by_kafka_streams(kafka_bootstrap, topic, theirs, tmp_path / "state")
    assert failure is None

    progress = extract_with_spark(read_stream(spark, kafka_bootstrap, topic, 200), tmp_path, ours)

    skips = isinstance(ours, LogAndSkipOnInvalidTimestamp)
    assert len(expected) == PARTITIONS * 301 - (negative if skips else 0)
    assert times_in(spark, tmp_path) == expected
    metrics = [p.observedMetrics["skipped records"] for p in progress if "skipped records" in p.observedMetrics]
    assert len(metrics) > 3
    assert sum(row["skipped"] for row in metrics) == (negative if skips else 0)
    assert sum(row["read"] for row in metrics) == PARTITIONS * 301
    by_partition = Counter[int]()
    for row in metrics:
        by_partition.update({each["partition"]: each["skipped"] for each in row["partitions"]})
    assert by_partition == Counter(partition for partition, _ in negative_ones) if skips else not by_partition


@pytest.mark.parametrize(
    ("ours", "theirs", "first_are_valid", "output"),
    [
        (FailOnInvalidTimestamp(), "FailOnInvalidTimestamp", True, "which is negative"),
        (UsePreviousTimeOnInvalidTimestamp(), "UsePartitionTimeOnInvalidTimestamp", False, "no earlier record"),
    ],
)
def test_query_fails_at_the_same_record_as_kafka_streams(
    spark: SparkSession,
    kafka_bootstrap: str,
    tmp_path: Path,
    ours: TimestampExtractor,
    theirs: str,
    first_are_valid: bool,
    output: str,
) -> None:
    topic, _ = stream_of_records(kafka_bootstrap, first_are_valid)
    _, failure = times_by_kafka_streams(kafka_bootstrap, topic, theirs, tmp_path / "state")
    assert failure is not None

    with pytest.raises(Exception, match=rf"{topic}-\d offset \d+ has the timestamp -\d+.*{output}"):
        extract_with_spark(read_stream(spark, kafka_bootstrap, topic, 2000), tmp_path, ours)


def test_the_partition_time_of_an_extraction_survives_a_restart(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(NOW + 5000), Rec(NOW)])))])
    extract_with_spark(read_stream(spark, kafka_bootstrap, topic, 100), tmp_path, UsePreviousTimeOnInvalidTimestamp())
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(-1)])))])

    extract_with_spark(read_stream(spark, kafka_bootstrap, topic, 100), tmp_path, UsePreviousTimeOnInvalidTimestamp())

    assert times_in(spark, tmp_path) == {(0, 0): NOW + 5000, (0, 1): NOW, (0, 2): NOW + 5000}


class CorrectsUnits:
    """A user's extractor that converts timestamps in other units, compared with the time that the partition has
    reached."""

    def extract(self, record: Any, previous: int) -> int:
        unit = unit_of(record.timestamp, max(previous, NOW))
        return record.timestamp if unit is None else in_milliseconds(record.timestamp, unit)


def test_a_custom_extractor_converts_nanoseconds_for_event_time_windows(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    with RawClient(kafka_bootstrap) as client:
        for i in range(10):
            records = [Rec(NOW + i * 60_000, headers=[(b"a", b"1")]), Rec((NOW + i * 60_000) * 1_000_000)]
            client.produce(9, [topic_data(topic, (0, batch(records)))])

    with pytest.raises(
        Exception, match=f"{topic}-0 offset 1: the event time .* is later than Spark's.*looks like nano"
    ):
        extract_with_spark(read_stream(spark, kafka_bootstrap, topic, 100), tmp_path / "a", FailOnInvalidTimestamp())

    events = with_event_time(read_stream(spark, kafka_bootstrap, topic, 4), CorrectsUnits())
    windows = events.withWatermark("event_time", "1 minute").groupBy(f.window("event_time", "5 minutes")).count()
    query = (
        windows.writeStream.format("memory")
        .queryName("corrected")
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "b"))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    rows = spark.sql("SELECT unix_millis(window.start) AS start, count FROM corrected").collect()
    first_window = NOW // 300_000 * 300_000
    assert {row["start"]: row["count"] for row in rows}[first_window] == 2 * (5 - NOW % 300_000 // 60_000)


def test_the_wallclock_extractor_gives_the_time_of_processing(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(-1), Rec(5)])))])
    before = time.time_ns() // 1_000_000

    extract_with_spark(read_stream(spark, kafka_bootstrap, topic, 100), tmp_path, WallclockTimestampExtractor())

    assert all(before <= at <= time.time_ns() // 1_000_000 for at in times_in(spark, tmp_path).values())


def test_the_command_counts_skipped_records(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic, negative_ones = stream_of_records(kafka_bootstrap)
    negative = len(negative_ones)
    about = ("extract", "--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path))

    output = run(*about, "--extractor", "skip", "--batch", "500")
    run(*about, "--extractor", "skip")

    found = summary(tmp_path)["topics"][topic]
    assert (found["records"], found["skipped"]) == (PARTITIONS * 301 - negative, negative)
    assert f"{negative:,}" in output or all(str(p["skipped"]) in output for p in found["partitions"].values())


@pytest.mark.parametrize(
    ("name", "theirs"), [("skip", "LogAndSkipOnInvalidTimestamp"), ("previous", "UsePartitionTimeOnInvalidTimestamp")]
)
def test_the_jobs_extractors_agree_with_kafka_streams(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, name: str, theirs: str
) -> None:
    topic, negative = stream_of_records(kafka_bootstrap)
    expected, _ = times_by_kafka_streams(kafka_bootstrap, topic, theirs, tmp_path / "state")
    topics, results = Topics(kafka_bootstrap, (topic,)), Results(spark, str(tmp_path / "out"))

    job.run(spark, topics, results, BuiltInExtractor(name), 250)

    rows = results.read_table(job.RECORDS).select("partition", "offset", f.expr("unix_millis(event_time) AS at"))
    assert {(row["partition"], row["offset"]): row["at"] for row in rows.collect()} == expected
    skipped = results.read_table(job.SKIPPED).collect() if name == "skip" else []
    assert sorted((row["partition"], row["offset"]) for row in skipped) == (sorted(negative) if name == "skip" else [])


@pytest.mark.parametrize(
    ("name", "time", "output"),
    [
        ("fail", -7, r"t-\w+-0 offset 1 has the timestamp -7, which is negative: --extractor skip drops such"),
        ("fail", NOW * 1_000_000, r"t-\w+-0 offset 1: the event time \d+ is later than .*; it looks like nanoseconds"),
        ("previous", -1, r"t-\w+-0 offset 0 has the timestamp -1, .* no earlier record"),
    ],
)
def test_an_extraction_ends_with_an_error_at_invalid_times(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, name: str, time: int, output: str
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(-1 if name == "previous" else NOW), Rec(time)])))])

    with pytest.raises(Exception, match=output):
        job.run(spark, Topics(kafka_bootstrap, (topic,)), Results(spark, str(tmp_path)), BuiltInExtractor(name), 100)


LATEST_OF_SPARK = (2**63 - 1) // 1000
LATE = [NOW, NOW * 1_000_000, NOW + 1, -1, LATEST_OF_SPARK, LATEST_OF_SPARK + 1, 2**63 - 1, -(2**63)]
"""Times that include values just before, at and after Spark's latest timestamp."""


@pytest.mark.parametrize("extractor", ["skip", "previous"])
@pytest.mark.parametrize("too_late", [TooLate.SKIP, TooLate.NULL])
def test_timestamps_beyond_sparks_range_are_left_out_or_null(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, extractor: str, too_late: TooLate
) -> None:
    """Kafka Streams forwards such timestamps and uses them as the partition's time."""
    topic = create_topic(kafka_bootstrap, UNLIMITED, PARTITIONS)
    end = [Rec(NOW, value=b"end")]
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([*(Rec(time) for time in LATE), *end])))])
        for partition in range(1, PARTITIONS):
            client.produce(9, [topic_data(topic, (partition, batch(end)))])
    theirs = {"skip": "LogAndSkipOnInvalidTimestamp", "previous": "UsePartitionTimeOnInvalidTimestamp"}[extractor]
    streams, _ = times_by_kafka_streams(kafka_bootstrap, topic, theirs, tmp_path / "state")
    topics, results = Topics(kafka_bootstrap, (topic,)), Results(spark, str(tmp_path / "out"))

    job.run(spark, topics, results, BuiltInExtractor(extractor, too_late), 100)

    late = results.read_table(job.RECORDS).where(f"partition = 0 AND offset < {len(LATE)}")
    found = {row.offset: row.at for row in late.select("offset", f.expr("unix_millis(event_time) AS at")).collect()}
    if too_late is TooLate.NULL:
        held = {offset: at for (partition, offset), at in streams.items() if partition == 0 and offset < len(LATE)}
        assert found == {offset: at if at <= LATEST_OF_SPARK else None for offset, at in held.items()}
    else:
        negative = {3: NOW + 1, 7: LATEST_OF_SPARK} if extractor == "previous" else {}
        assert found == {0: NOW, 2: NOW + 1, 4: LATEST_OF_SPARK} | negative
    counts = job.summary_of(topics, results)["topics"][topic]["partitions"]["0"]
    assert (counts["records"], counts["too_late"]) == (len(found) + 1, 3)
    assert counts["records"] + counts["skipped"] == len(LATE) + 1


@pytest.mark.parametrize("too_late", [TooLate.SKIP, TooLate.NULL])
def test_a_stream_skips_timestamps_beyond_sparks_range_or_sets_null(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, too_late: TooLate
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(time) for time in LATE])))])
    events = with_event_time(read_stream(spark, kafka_bootstrap, topic, 4), LogAndSkipOnInvalidTimestamp(), too_late)
    query = (
        events.select("offset", f.expr("unix_millis(event_time) AS at"))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "out"))
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()

    found = {row["offset"]: row["at"] for row in spark.read.parquet(str(tmp_path / "out")).collect()}

    without = dict.fromkeys((1, 5, 6)) if too_late is TooLate.NULL else {}
    assert found == {0: NOW, 2: NOW + 1, 4: LATEST_OF_SPARK} | without


def test_an_earlier_timestamp_in_another_unit_does_not_change_the_reported_unit(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """A timestamp in microseconds, which is within Spark's range, precedes one in nanoseconds."""
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(NOW * 1000), Rec(NOW * 1_000_000)])))])

    with pytest.raises(Exception, match=r"offset 1: the event time .* looks like nanoseconds"):
        extract_with_spark(read_stream(spark, kafka_bootstrap, topic, 100), tmp_path, FailOnInvalidTimestamp())


def test_leftovers_of_a_killed_run_are_replaced_and_new_records_added(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    topics, results = Topics(kafka_bootstrap, (topic,)), Results(spark, str(tmp_path))
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(NOW + i) for i in range(5)])))])
        job.run(spark, topics, results, BuiltInExtractor("previous"), 3)
        for unfinished in ("part-other.parquet", f".part-{topic}-00000.parquet.part"):
            (tmp_path / job.RECORDS / "batch=2").mkdir(exist_ok=True)
            (tmp_path / job.RECORDS / "batch=2" / unfinished).write_bytes(b"not whole")
        client.produce(9, [topic_data(topic, (0, batch([Rec(-1)])))])

    job.run(spark, topics, results, BuiltInExtractor("previous"), 3)

    rows = results.read_table(job.RECORDS).select("offset", "batch", f.expr("unix_millis(event_time) AS at"))
    expected = {(i, i // 3, NOW + i) for i in range(5)} | {(5, 2, NOW + 4)}
    assert {(row["offset"], row["batch"], row["at"]) for row in rows.collect()} == expected
    counted = {"records": 6, "skipped": 0, "too_late": 0}
    assert job.summary_of(topics, results)["topics"] == {topic: counted | {"partitions": {"0": counted}}}


@pytest.mark.parametrize("names", [("u", "fail"), ("t", "skip")])
def test_rejects_a_folder_of_another_extraction(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, names: tuple[str, str]
) -> None:
    topics = {name: create_topic(kafka_bootstrap, UNLIMITED, 1) for name in ("t", "u")}
    results = Results(spark, str(tmp_path))
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topics["t"], (0, batch([Rec(NOW)])))])
    job.run(spark, Topics(kafka_bootstrap, (topics["t"],)), results, BuiltInExtractor("fail"), 100)

    with pytest.raises(
        job.DifferentExtraction, match=f"has records of {topics['t']} by the extractor fail: use the same"
    ):
        job.run(spark, Topics(kafka_bootstrap, (topics[names[0]],)), results, BuiltInExtractor(names[1]), 100)


def test_another_extractor_may_start_after_a_failure_without_output(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """The error recommends to run the same command with another --extractor."""
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    topics, results = Topics(kafka_bootstrap, (topic,)), Results(spark, str(tmp_path))
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(NOW), Rec(-7)])))])
    with pytest.raises(Exception, match="--extractor skip drops such"):
        job.run(spark, topics, results, BuiltInExtractor("fail"), 100)

    job.run(spark, topics, results, BuiltInExtractor("skip"), 100)

    counted = {"records": 1, "skipped": 1, "too_late": 0}
    assert job.summary_of(topics, results)["topics"] == {topic: counted | {"partitions": {"0": counted}}}
