"""Repairs copy records that client libraries cannot write, byte by byte and exactly once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.transactional_producer import ProducerFenced, TransactionalProducer
from sluicegate.pipeline.topics import Topics
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.writing import NewRecord
from tests.broker.fixtures import running
from tests.broker.kafka import Kafka
from tests.integration.topics import create_topic
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD
from tests.pipeline.cleaned_topic import java_reads
from tests.pipeline.polluted import UNLIMITED
from tests.pipeline.repairs import now_ms, repaired, verify_clean_topic
from tests.pipeline.stored import stored
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
NAMES = [b"\xff\xfe", b"a\0b", b"\0", b"", "é".encode(), b"plain", b"plain", b"\xed\xa0\x80"]
HELD = [b"1", None, b"", b"\xff", b"x", b"1", None, b"y"]


def content(spark: SparkSession, bootstrap: str, topic: str) -> list[tuple[object, ...]]:
    """Each record without its time, and without what a repair adds."""
    return [
        (each.partition, each.key, each.value, [h for h in each.headers if not h[0].startswith(b"sluicegate.")])
        for each in stored(spark, bootstrap, topic)
    ]


def test_a_repair_keeps_every_byte(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    now = now_ms() - 60_000
    topic = create_topic(kafka_bootstrap, UNLIMITED, 2)
    odd = [Rec(now + i, headers=[(name, held)]) for i, (name, held) in enumerate(zip(NAMES, HELD, strict=True))]
    kinds = [Rec(now + 20, key, value) for key in (None, b"", b"k") for value in (None, b"", b"v")]
    damaged = [Rec(0, headers=[(b"\xff", b"1")]), Rec(now * 1_000_000, value=b"x" * 300_000)]
    with RawClient(kafka_bootstrap) as client:
        for part in (odd, kinds, damaged, [Rec(now + 30, value=b"y" * 700_000)] * 3):
            client.produce(9, [topic_data(topic, (0, batch(part, LZ4)))])
        client.produce(9, [topic_data(topic, (1, batch([Rec(now), Rec(0)])))])

    done = repaired(spark, kafka_bootstrap, topic, tmp_path / "repair")

    assert done["topics"][topic]["repaired"] == {"nanoseconds": 1, "zero": 2}
    assert [text.split(",")[0] for text in done["warnings"] if "header" in text] == [f"{topic}-0: 5 records"]
    assert content(spark, kafka_bootstrap, f"{topic}-clean") == content(spark, kafka_bootstrap, topic)
    assert verify_clean_topic(spark, kafka_bootstrap, topic, tmp_path / "verify")["same"]


@pytest.fixture(params=[KAFKA_NEW, KAFKA_OLD])
def kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kafka]:
    yield from running(Kafka(request.param, tmp_path / "kafka"))


def test_only_committed_records_are_read_and_an_earlier_producer_is_fenced(kafka: Kafka) -> None:
    """Kafka's own consumer is the audit, on both releases."""
    topic, source = (create_topic(kafka.bootstrap, UNLIMITED, 1) for _ in range(2))
    to, of = TopicPartition(topic, 0), TopicPartition(source, 0)
    cluster = Topics(kafka.bootstrap, (topic,)).cluster()

    def records(value: bytes) -> list[NewRecord]:
        return [NewRecord(now_ms(), b"k", value + b"%d" % i) for i in range(2)]

    try:
        first = TransactionalProducer(cluster, "copies", Codec.LZ4)
        assert first.send(to, records(b"a")) == 1
        first.commit("copiers", of, 7, "reported")
        first.send(to, records(b"b"))
        first.abort()
        first.send(to, records(b"left open"))
        second = TransactionalProducer(cluster, "copies", Codec.ZSTD)
        with pytest.raises(ProducerFenced):
            first.send(to, records(b"fenced"))
        for value in (b"c", b"d"):
            second.send(to, records(value))
        second.commit("copiers", of, 9, "reported")
    finally:
        cluster.close()

    assert java_reads(kafka, topic) == [("k", value) for value in ("a0", "a1", "c0", "c1", "d0", "d1")]
