"""If a stream's checkpoint and topic no longer match, missing records are an error or are reported, but never skipped
silently.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.extract import job as extraction
from sluicegate.pipeline.jobs.extract.built_in import BuiltInExtractor
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.losses import LogStates, LostOffsets, Position, report_losses, surviving_ranges
from sluicegate.pipeline.source.topics import Topics
from tests.integration.topics import create_topic
from tests.pipeline.polluted import UNLIMITED
from tests.pipeline.test_topics_that_go import delete_topic, recreate_topic, write_records

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

OF = TopicPartition("t", 0)


def position_at(offset: int, topic_id: str = "a") -> Position:
    return Position({OF: offset}, {"t": topic_id} if topic_id else {})


def log_states(first: int, end: int, topic_id: str = "a") -> LogStates:
    return LogStates({OF: first}, {OF: end}, {"t": topic_id})


@pytest.mark.parametrize(
    ("start", "end", "now", "read", "output"),
    [
        (position_at(10), position_at(20), log_states(0, 20), (10, 20), None),
        (position_at(10), position_at(20), log_states(0, 30), (10, 20), None),
        (position_at(10, ""), position_at(20), log_states(0, 20), (10, 20), None),  # a checkpoint of an earlier release
        (
            position_at(10),
            position_at(20),
            log_states(15, 20),
            (15, 20),
            "up to offset 10, and begins at offset 15: offsets 10 to 14 are gone",
        ),
        (
            position_at(10),
            position_at(20),
            log_states(25, 30),
            None,
            "up to offset 10, and begins at offset 25: offsets 10 to 24 are gone",
        ),
        (position_at(10), position_at(8), log_states(0, 8), None, "up to offset 10, but ends at offset 8"),
        (
            position_at(10),
            position_at(20),
            log_states(0, 15),
            (10, 15),
            "the batch ends at offset 20, and the log at 15: offsets 15 to 19",
        ),
        (
            position_at(10),
            position_at(5, "b"),
            log_states(0, 5, "b"),
            (0, 5),
            "up to offset 10, and the topic has since been recreated",
        ),
        (
            position_at(10),
            position_at(10, "b"),
            log_states(0, 10, "b"),
            (0, 10),
            "has offsets 0 to 9: records of the deleted topic from offset 10",
        ),
        (
            position_at(10),
            position_at(50, "b"),
            log_states(0, 50, "b"),
            (0, 50),
            "up to offset 10, and the topic has since been recreated",
        ),
        (
            position_at(10),
            position_at(20),
            log_states(0, 50, "b"),
            None,
            "ends at offset 50: offsets 10 to 19 are gone",
        ),
        (position_at(10), Position({}), LogStates({}, {}, {}), None, "up to offset 10, and the topic no longer exists"),
        (
            position_at(10),
            Position({}),
            LogStates({}, {}, {"t": "a"}),
            None,
            "up to offset 10, and the partition no longer exists",
        ),
        (
            position_at(10),
            position_at(20),
            LogStates({}, {}, {}),
            None,
            "the topic no longer exists.*offsets 10 to 19 are gone",
        ),
        (
            Position({}),
            position_at(20),
            log_states(5, 20),
            (5, 20),
            "the partition is new and begins at offset 5, not 0",
        ),
        (Position({}), position_at(20), log_states(0, 20), (0, 20), None),
    ],
)
def test_a_streams_positions_outside_of_the_log_are_reported_as_lost(
    start: Position, end: Position, now: LogStates, read: tuple[int, int] | None, output: str | None
) -> None:
    ranges, lost = surviving_ranges(start, end, now)

    assert ranges == ([OffsetRange(OF, *read)] if read else [])
    if output is None:
        assert lost == []
    else:
        with pytest.raises(LostOffsets, match=f"^t-0: .*{output}"):
            report_losses(lost, must_fail=True)
        with pytest.warns(UserWarning, match=f"^t-0: .*{output}"):
            report_losses(lost, must_fail=False)


def test_checkpoint_stores_offsets_in_sparks_format_and_topic_ids_separately() -> None:
    stored = Position({TopicPartition("t", 1): 7, OF: 5}, {"t": "a", "other": "b"}).stored()

    assert stored == {"t": {"0": 5, "1": 7}, "topic ids": {"t": "a"}}
    assert Position.from_stored(json.loads(json.dumps(stored))).stored() == stored
    assert Position.from_stored({"t": {"0": 5}}) == Position({OF: 5})


def run(spark: SparkSession, bootstrap: str, topic: str, folder: Path, **options: str) -> list[tuple[int, int]]:
    """Read everything that exists now; return all partitions and offsets that the stream has read so far."""
    frame = (
        spark.readStream.format("sluicegate")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("columns", "partition,offset")
        .option("startingOffsets", "earliest")
        .options(**options)
        .load()
    )
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    rows = spark.read.schema("partition int, offset bigint").parquet(str(folder / "out")).collect()
    return sorted((row.partition, row.offset) for row in rows)


def _recreate_with(records: int) -> Callable[[str, str], None]:
    def change_topic(bootstrap: str, topic: str) -> None:
        delete_topic(bootstrap, topic)
        recreate_topic(bootstrap, topic)
        write_records(bootstrap, topic, records)

    return change_topic


def _delete_records(bootstrap: str, topic: str) -> None:
    write_records(bootstrap, topic, 30)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_records([ClientPartition(topic, 0, 50)]).values():
        deleted.result(30)


AGAIN = r"was read up to offset 30, and the topic has since been recreated \(its id changed\)"


@pytest.mark.parametrize(
    ("change_topic", "output", "more"),
    [
        pytest.param(_recreate_with(20), f"{AGAIN} and has offsets 0 to 19", range(20), id="fewer"),
        pytest.param(_recreate_with(30), f"{AGAIN} and has offsets 0 to 29", range(30), id="as_many"),
        pytest.param(_recreate_with(40), f"{AGAIN} and has offsets 0 to 39", range(40), id="more"),
        pytest.param(
            _delete_records,
            "was read up to offset 30, and begins at offset 50: offsets 30 to 49 are gone",
            range(50, 60),
            id="deleted_records",
        ),
        pytest.param(delete_topic, "was read up to offset 30, and the topic no longer exists", range(0), id="deleted"),
    ],
)
def test_stream_reports_records_lost_since_its_checkpoint(
    change_topic: Callable[[str, str], None],
    output: str,
    more: range,
    spark: SparkSession,
    kafka_bootstrap: str,
    tmp_path: Path,
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    write_records(kafka_bootstrap, topic, 30)
    before = [(0, offset) for offset in range(30)]
    assert run(spark, kafka_bootstrap, topic, tmp_path) == before

    change_topic(kafka_bootstrap, topic)

    with pytest.raises(StreamingQueryException, match=f"{topic}-0: {output}"):
        run(spark, kafka_bootstrap, topic, tmp_path)
    found = run(spark, kafka_bootstrap, topic, tmp_path, failOnDataLoss="false")
    assert found == sorted([*before, *((0, offset) for offset in more)])


def change_checkpoint(folder: Path, change_topic: Callable[[dict[str, Any]], None]) -> None:
    """Change the offsets of the stream's first batch."""
    (offsets,) = (folder / "checkpoint" / "offsets").glob("0")
    lines = offsets.read_text().splitlines()
    stored: dict[str, Any] = json.loads(lines[-1])
    change_topic(stored)
    offsets.write_text("\n".join([*lines[:-1], json.dumps(stored)]))
    (folder / "checkpoint" / "offsets" / ".0.crc").unlink()


def test_losses_are_detected_by_offsets_if_checkpoint_has_no_topic_ids(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    write_records(kafka_bootstrap, topic, 30)
    run(spark, kafka_bootstrap, topic, tmp_path)
    change_checkpoint(tmp_path, lambda stored: stored.pop("topic ids"))
    _recreate_with(20)(kafka_bootstrap, topic)

    with pytest.raises(StreamingQueryException, match=f"{topic}-0: was read up to offset 30, but ends at offset 20"):
        run(spark, kafka_bootstrap, topic, tmp_path)


def test_a_stream_reports_a_log_that_ends_before_its_checkpoint(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """After the loss of a broker's disk a topic may have the same id and fewer records."""
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    write_records(kafka_bootstrap, topic, 30)
    before = run(spark, kafka_bootstrap, topic, tmp_path)
    change_checkpoint(tmp_path, lambda stored: stored[topic].update({"0": 50}))

    with pytest.raises(StreamingQueryException, match=f"{topic}-0: was read up to offset 50, but ends at offset 30"):
        run(spark, kafka_bootstrap, topic, tmp_path)
    assert run(spark, kafka_bootstrap, topic, tmp_path, failOnDataLoss="false") == before
    write_records(kafka_bootstrap, topic, 5)
    assert len(run(spark, kafka_bootstrap, topic, tmp_path)) == 35


def test_a_stream_reports_a_partition_that_vanished(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 2)
    for partition in (0, 1):
        write_records(kafka_bootstrap, topic, 30, partition=partition)
    before = run(spark, kafka_bootstrap, topic, tmp_path)
    _recreate_with(10)(kafka_bootstrap, topic)

    with pytest.raises(
        StreamingQueryException, match=f"{topic}-1: was read up to offset 30, and the partition no longer exists"
    ):
        run(spark, kafka_bootstrap, topic, tmp_path)
    found = run(spark, kafka_bootstrap, topic, tmp_path, failOnDataLoss="false")
    assert found == sorted([*before, *((0, offset) for offset in range(10))])


def test_an_extraction_reports_records_that_were_deleted_before_it_read_them(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    write_records(kafka_bootstrap, topic, 30)
    topics, results = Topics(kafka_bootstrap, (topic,)), Results(spark, str(tmp_path))
    results.make()
    extraction.run(spark, topics, results, BuiltInExtractor("skip"), 1000)
    _delete_records(kafka_bootstrap, topic)

    lost = f"{topic}-0: was read up to offset 30, and begins at offset 50: offsets 30 to 49 are gone"
    with pytest.raises(extraction.RecordsMissing, match=lost):
        extraction.run(spark, topics, results, BuiltInExtractor("skip"), 1000)
    extraction.run(spark, replace(topics, skip_missing=True), results, BuiltInExtractor("skip"), 1000)

    summary = extraction.summary_of(topics, results)
    assert summary["topics"][topic]["records"] == 40
    assert [sentence.startswith(lost) for sentence in summary["missing"]] == [True]
    offsets = {row.offset for row in results.read_table(extraction.RECORDS).select("offset").collect()}
    assert offsets == {*range(30), *range(50, 60)}
