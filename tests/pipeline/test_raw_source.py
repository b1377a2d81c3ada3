"""For healthy topics, the raw source returns the same rows as Spark's own source. It also returns rows for which
Spark's source returns none."""

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from tests.integration.topics import UNVALIDATED, create_topic
from tests.pipeline.sparks_own import needs_sparks_own

# py4j leaves the closing of its sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COMPARED = "topic, partition, offset, timestamp, timestampType, key, value, headers"
OURS = "topic, partition, offset, timestamp, timestamp_type AS timestampType, key, value, headers"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def read_raw_source(spark: SparkSession, bootstrap: str, topic: str, **options: Any) -> DataFrame:
    reader = spark.read.format("sluicegate").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return reader.options(**options).load()


def sparks_own(spark: SparkSession, bootstrap: str, topic: str, **options: Any) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return reader.options(**{"includeHeaders": "true", "kafka.isolation.level": "read_committed"} | options).load()


def rows_of(frame: DataFrame) -> list[Row]:
    return sorted(frame.collect(), key=lambda row: (row["topic"], row["partition"], row["offset"]))


def rows_of_both(spark: SparkSession, bootstrap: str, topic: str) -> tuple[list[Row], list[Row]]:
    theirs = sparks_own(spark, bootstrap, topic).withColumn("timestamp", _in_ms())
    return rows_of(read_raw_source(spark, bootstrap, topic).selectExpr(*OURS.split(", "))), rows_of(
        theirs.selectExpr(*COMPARED.split(", "))
    )


def _in_ms() -> Any:
    from pyspark.sql.functions import expr  # noqa: PLC0415  # needs a session

    return expr("unix_millis(timestamp)")


def send_records(bootstrap: str, topic: str, count: int, codec: str = "lz4", partitions: int = 3, **more: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
    now = int(time.time() * 1000)
    for i in range(count):
        record = {
            "key": None if i % 7 == 0 else f"key-{i}",
            "value": None if i % 11 == 0 else b"v" * (i % 300),
            "headers": [("trace", b"id-%d" % i), ("empty", b""), ("null", None)] if i % 5 == 0 else None,
            "timestamp": now - i,
            "partition": i % partitions,
        }
        producer.produce(topic, **{**record, **more})
    assert producer.flush(30) == 0


@needs_sparks_own
@pytest.mark.parametrize("codec", CODECS)
def test_a_healthy_topic_has_the_rows_that_sparks_own_source_gives(
    spark: SparkSession, kafka_bootstrap: str, codec: str
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    send_records(kafka_bootstrap, topic, 1000, codec)

    ours, theirs = rows_of_both(spark, kafka_bootstrap, topic)

    assert len(ours) == 1000
    assert ours == theirs


@needs_sparks_own
def test_aborted_records_are_skipped(spark: SparkSession, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    producer = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for i in range(50):
            producer.produce(topic, f"{number}-{i}", partition=i % 3)
        producer.flush()
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    send_records(kafka_bootstrap, topic, 30)

    ours, theirs = rows_of_both(spark, kafka_bootstrap, topic)

    assert len(ours) == 180
    assert ours == theirs
    everything = read_raw_source(spark, kafka_bootstrap, topic, **{"isolation.level": "read_uncommitted"})
    assert everything.count() == 330


@needs_sparks_own
def test_a_timestamp_that_sparks_own_source_cannot_read_is_read(spark: SparkSession, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    nanoseconds = time.time_ns()
    send_records(kafka_bootstrap, topic, 10)
    send_records(kafka_bootstrap, topic, 1, timestamp=nanoseconds, partition=1)

    with pytest.raises(Exception, match="long overflow"):
        sparks_own(spark, kafka_bootstrap, topic).selectExpr("unix_millis(timestamp)").collect()
    found = (
        read_raw_source(spark, kafka_bootstrap, topic, columns="timestamp,offset")
        .selectExpr("max(timestamp) AS latest")
        .first()
    )

    assert found is not None
    assert found.latest == nanoseconds


@needs_sparks_own
def test_small_partitions_share_tasks_and_keep_their_order(spark: SparkSession, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 66)
    send_records(kafka_bootstrap, topic, 66 * 5, partitions=66)

    ours, theirs = rows_of_both(spark, kafka_bootstrap, topic)
    shared = read_raw_source(spark, kafka_bootstrap, topic, columns="partition,offset")
    in_order = shared.collect()

    assert len(ours) == 66 * 5
    assert ours == theirs
    assert shared.rdd.getNumPartitions() == 33  # two chunks per task
    assert [(row.partition, row.offset) for row in in_order] == [(p, o) for p in range(66) for o in range(5)]


@needs_sparks_own
def test_reads_the_rows_between_given_offsets_in_small_tasks(spark: SparkSession, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    send_records(kafka_bootstrap, topic, 900)
    bounds = {
        "startingOffsets": f'{{"{topic}": {{"0": 17, "1": -2, "2": 299}}}}',
        "endingOffsets": f'{{"{topic}": {{"0": 100, "1": 250, "2": -1}}}}',
    }

    ours = read_raw_source(
        spark, kafka_bootstrap, topic, columns="topic,partition,offset", minPartitions="12", **bounds
    )
    theirs = sparks_own(spark, kafka_bootstrap, topic, **bounds).select("topic", "partition", "offset")

    assert ours.rdd.getNumPartitions() >= 10
    assert len(rows_of(ours)) == 83 + 250 + 1
    assert rows_of(ours) == rows_of(theirs)


@pytest.mark.long
def test_a_stream_resumes_at_its_checkpoint(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    send_records(kafka_bootstrap, topic, 600)

    def run() -> None:
        frame = (
            spark.readStream.format("sluicegate")
            .option("kafka.bootstrap.servers", kafka_bootstrap)
            .option("subscribe", topic)
            .option("columns", "topic,partition,offset,value_size")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "150")
            .option("trigger", "processingTime")  # for releases before Spark 4.2
            .load()
        )
        query = (
            frame.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    run()
    batches = len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*")))
    send_records(kafka_bootstrap, topic, 300)
    run()

    found = rows_of(spark.read.parquet(str(tmp_path / "out")))
    assert batches >= 4
    assert [(row.partition, row.offset) for row in found] == [(p, o) for p in range(3) for o in range(300)]


@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({"subscribe": "no-such-topic"}, "there is no topic 'no-such-topic'"),
        ({"columns": "timestmp"}, "did you mean timestamp"),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"kafka.security.protocl": "ssl"}, "did you mean 'security.protocol'"),
    ],
)
def test_invalid_options_are_reported(
    spark: SparkSession, kafka_bootstrap: str, options: dict[str, str], output: str
) -> None:
    with pytest.raises(PySparkException, match=output):
        read_raw_source(spark, kafka_bootstrap, options.pop("subscribe", "t"), **options).collect()
