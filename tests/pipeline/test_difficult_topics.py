"""The raw source reads difficult topics: compacted, growing, truncated at their start, or behind TLS and a login."""

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import SparkSession

from tests.broker.eventually import eventually
from tests.integration.secure_brokers import MECHANISMS, TOPIC, GuardedBroker, client_login
from tests.integration.topics import UNVALIDATED, create_topic
from tests.pipeline.sparks_own import needs_sparks_own
from tests.pipeline.test_raw_source import read_raw_source, rows_of, rows_of_both, send_records, sparks_own

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
}


@needs_sparks_own
def test_the_raw_source_reads_a_compacted_topic_across_its_gaps(spark: SparkSession, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED | COMPACTED, 1)
    now = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": kafka_bootstrap, "compression.type": "lz4", "linger.ms": 50})
    for i in range(2000):
        producer.produce(topic, f"v{i}", f"k{i % 37 if i % 3 else i}", partition=0, timestamp=now)
    assert producer.flush(30) == 0

    def is_compacted() -> bool:
        producer.produce(topic, "new", f"k{time.monotonic()}", partition=0)  # makes the broker roll a segment
        producer.flush(10)
        return read_raw_source(spark, kafka_bootstrap, topic, columns="offset").count() < 1500

    eventually(is_compacted, 90, "compaction")
    ours, theirs = rows_of_both(spark, kafka_bootstrap, topic)

    assert ours == theirs
    chunks = read_raw_source(spark, kafka_bootstrap, topic, columns="topic,partition,offset", minPartitions="7")
    assert chunks.rdd.getNumPartitions() == 7
    assert [row["offset"] for row in rows_of(chunks)] == [row["offset"] for row in ours]


def test_partitions_added_while_a_stream_runs_are_read_from_their_beginning(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    send_records(kafka_bootstrap, topic, 20, partition=0)
    options = {"startingOffsets": "earliest", "columns": "topic,partition,offset"}
    reader = spark.readStream.format("sluicegate").option("kafka.bootstrap.servers", kafka_bootstrap)
    query = (
        reader.option("subscribe", topic)
        .options(**options)
        .load()
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
        (added,) = admin.create_partitions([NewPartitions(topic, 3)]).values()
        added.result(30)
        send_records(kafka_bootstrap, topic, 30)

        def has_all_rows() -> bool:
            query.processAllAvailable()
            return spark.read.parquet(str(tmp_path / "out")).count() == 50

        eventually(has_all_rows, 60, "the rows of all partitions")
    finally:
        query.stop()

    found = rows_of(spark.read.parquet(str(tmp_path / "out")))
    assert [(r["partition"], r["offset"]) for r in found] == [
        (r["partition"], r["offset"])
        for r in rows_of(read_raw_source(spark, kafka_bootstrap, topic, columns=options["columns"]))
    ]


@pytest.fixture
def cut_topic(kafka_bootstrap: str) -> str:
    """Return a topic in which one partition lacks its first hundred records."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    send_records(kafka_bootstrap, topic, 300, partition=0)
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 100)]).values():
        deleted.result(30)
    return topic


def test_deleted_records_end_the_query_or_are_skipped(
    spark: SparkSession, kafka_bootstrap: str, cut_topic: str
) -> None:
    options: dict[str, Any] = {
        "columns": "topic,partition,offset",
        "startingOffsets": f'{{"{cut_topic}": {{"0": 50}}}}',
    }

    with pytest.raises(Exception, match=f"{cut_topic}-0: startingOffsets is offset 50, .*: offsets 50 to 99 are gone"):
        read_raw_source(spark, kafka_bootstrap, cut_topic, **options).collect()
    found = read_raw_source(spark, kafka_bootstrap, cut_topic, failOnDataLoss="false", **options)

    assert [row["offset"] for row in rows_of(found)] == list(range(100, 300))


@needs_sparks_own
def test_a_starting_time_selects_the_rows_of_sparks_own_source(spark: SparkSession, kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    middle = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    for i in range(300):
        producer.produce(topic, str(i), partition=i % 3, timestamp=middle - 150_000 + i * 1000)
    assert producer.flush(30) == 0

    ours = read_raw_source(spark, kafka_bootstrap, topic, columns="topic,partition,offset", startingTimestamp=middle)
    theirs = sparks_own(spark, kafka_bootstrap, topic, startingTimestamp=middle).select("topic", "partition", "offset")

    assert len(rows_of(ours)) == 150
    assert rows_of(ours) == rows_of(theirs)
    before = read_raw_source(spark, kafka_bootstrap, topic, columns="offset", endingTimestamp=middle)
    assert before.count() == 150


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_reads_over_tls_with_each_sasl_mechanism(spark: SparkSession, guarded: GuardedBroker, mechanism: str) -> None:
    bootstrap = guarded.kafka.bootstrap
    settings = client_login("alice", "secret", mechanism) | {"ssl.ca.location": str(guarded.authority.file)}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for i in range(10):
        producer.produce(TOPIC, f"{mechanism} {i}")
    assert producer.flush(30) == 0
    options = {f"kafka.{name}": value for name, value in settings.items()}

    found = read_raw_source(spark, bootstrap, TOPIC, columns="value", **options)

    values = [bytes(row["value"]).decode() for row in found.collect()]
    assert [value for value in values if value.startswith(mechanism + " ")] == [f"{mechanism} {i}" for i in range(10)]
    wrong = {**options, "kafka.sasl.password": "wrong"}
    with pytest.raises(Exception, match=r"LoginRejected.*(Authentication failed|invalid credentials)"):
        read_raw_source(spark, bootstrap, TOPIC, columns="value", **wrong).collect()
