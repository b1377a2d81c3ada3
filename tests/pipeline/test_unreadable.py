"""Each job reports a batch with corrupted bytes on a broker, and reads the other batches if requested."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline import api
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from sluicegate.validation.verdict import Reason
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.integration.topics import create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.pipeline.polluted import UNLIMITED
from tests.pipeline.repairs import now_ms
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
WHY = "the CRC of the batch at offset 5 does not match"
POLICIES = {"upstream": {"bootstrap": ["127.0.0.1:9"]}, "listen": {"bootstrap": "127.0.0.1:9", "broker_port_base": 9}}


@pytest.fixture(scope="module")
def damaged_topic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, str, bytes]]:
    """Yield a broker, a topic of three batches of five records, in which one byte of the second batch was changed, and
    the damaged batch."""
    for kafka in run_kafka(Kafka(KAFKA_NEW, tmp_path_factory.mktemp("damaged"))):
        topic, now = create_topic(kafka.bootstrap, UNLIMITED, 1), now_ms()
        with RawClient(kafka.bootstrap) as client:
            for first in (0, 5, 10):
                times = [0 if first + i == 12 else now - 60_000 + first + i for i in range(5)]
                records = [Rec(time, value=b"%d" % (first + i)) for i, time in enumerate(times)]
                client.produce(9, [topic_data(topic, (0, batch(records, LZ4)))])
        (file,) = (kafka.folder / "data-1" / f"{topic}-0").glob("*.log")
        stored = file.read_bytes()
        start = 12 + int.from_bytes(stored[8:12], "big")
        end = start + 12 + int.from_bytes(stored[start + 8 : start + 12], "big")
        with file.open("r+b") as log:
            log.seek(end - 3)
            log.write(bytes([stored[end - 3] ^ 0x40]))
        yield kafka, topic, file.read_bytes()[start:end]


def test_a_profile_reports_an_unreadable_batch_and_counts_the_rest(
    spark: SparkSession, damaged_topic: tuple[Kafka, str, bytes], tmp_path: Path
) -> None:
    kafka, topic, stored = damaged_topic

    found = api.profile(spark, kafka.bootstrap, topic, tmp_path)

    its = found.summary["topics"][topic]
    place = {"partition": 0, "unreadable_from": 5, "unreadable_to": 9, "unreadable_batches": 1}
    assert its["unreadable"] == [place | {"unreadable_bytes": len(stored), "reason": WHY}]
    assert (its["records"], its["damage"]["zero"]) == (10, 1)
    message = f"{topic}-0: offsets 5 to 9 (1 batch) cannot be read: {WHY}; the rest is counted"
    assert message in found.warnings
    assert message in (tmp_path / "report.html").read_text()


def test_audit_of_unreadable_batch_equals_proxy_findings(
    spark: SparkSession, damaged_topic: tuple[Kafka, str, bytes], tmp_path: Path
) -> None:
    kafka, topic, _ = damaged_topic
    (tmp_path / "policies.yaml").write_text(json.dumps(POLICIES))

    found = api.audit(spark, kafka.bootstrap, topic, tmp_path / "out", tmp_path / "policies.yaml")

    verdicts = found.summary["topics"][topic]["verdicts"]
    assert (verdicts["good"]["batches"], verdicts["reject"]["batches"]) == (2, 1)
    (sample,) = found.summary["samples"]
    assert (sample["offset"], sample["verdict"], sample["reason"]) == (5, "reject", Reason.CRC_MISMATCH.value)


def test_a_repair_reports_an_unreadable_batch_and_skips_it_on_request(
    spark: SparkSession, damaged_topic: tuple[Kafka, str, bytes], tmp_path: Path
) -> None:
    kafka, topic, stored = damaged_topic
    given: Any = (spark, kafka.bootstrap, topic)

    dry = api.plan_repair(*given, tmp_path / "dry")
    with pytest.raises(CannotWriteTopic, match=rf"{topic}-0: offsets 5 to 9 \(1 batch\) cannot be read: {WHY}"):
        api.repair(*given, tmp_path / "dry")
    done = api.repair(*given, tmp_path / "repair", skip_unreadable=True)

    assert [text.split(";")[0] for text in dry.obstacles] == [
        f"{topic}-0: offsets 5 to 9 (1 batch) cannot be read: {WHY}"
    ]
    assert done.summary["topics"][topic]["repaired"] == {"zero": 1}
    assert any("these are skipped, and the table unreadable contains their bytes" in text for text in done.warnings)
    (row,) = spark.read.parquet(str(tmp_path / "repair" / "unreadable")).collect()
    assert (row.topic, row.partition, row.first_offset, row.last_offset, row.reason) == (topic, 0, 5, 9, WHY)
    assert bytes(row.stored) == stored
    clean = f"{topic}-clean"
    values = (
        spark.read.format("sluicegate").option("kafka.bootstrap.servers", kafka.bootstrap).option("subscribe", clean)
    )
    assert {bytes(row["value"]) for row in values.load().collect()} == {b"%d" % i for i in (*range(5), *range(10, 15))}
    asked: Any = (spark, kafka.bootstrap, topic, clean)
    assert api.verify(*asked, tmp_path / "verify", plan=tmp_path / "repair").is_same
    assert api.verify(*asked, tmp_path / "again", skip_unreadable=True).is_same
    with pytest.raises(Exception, match=rf"{topic}-0: offsets 5 to 9 .*--skip-unreadable"):
        api.verify(*asked, tmp_path / "strict")


def test_the_raw_source_fails_at_an_unreadable_batch_or_skips_it(
    spark: SparkSession, damaged_topic: tuple[Kafka, str, bytes]
) -> None:
    kafka, topic, _ = damaged_topic
    reader = spark.read.format("sluicegate").option("kafka.bootstrap.servers", kafka.bootstrap)

    with pytest.raises(Exception, match=rf"{topic}-0: offsets 5 to 9 \(1 batch\) cannot be read: {WHY}"):
        reader.option("subscribe", topic).load().collect()
    rows = reader.option("subscribe", topic).option("failOnUnreadable", "false").load().collect()

    assert [row["offset"] for row in rows] == [*range(5), *range(10, 15)]


def test_a_watch_counts_an_unreadable_batch_once_and_continues(
    spark: SparkSession, damaged_topic: tuple[Kafka, str, bytes], tmp_path: Path
) -> None:
    kafka, topic, stored = damaged_topic

    found = api.watch(spark, kafka.bootstrap, topic, tmp_path)

    its = found.summary["topics"][topic]
    assert (its["records"], its["unreadable"]) == (10, 1)
    (row,) = spark.read.parquet(str(tmp_path / "watch_unreadable")).collect()
    assert (row.first_offset, row.last_offset, row.stored_bytes, row.reason) == (5, 9, len(stored), WHY)
