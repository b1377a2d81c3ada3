"""A stream's triggers and limits work as in Spark's own source."""

from pathlib import Path
from typing import Any

import pytest
from pyspark import __version__ as spark_version
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.integration.topics import UNVALIDATED, create_topic
from tests.pipeline.sparks_own import needs_sparks_own
from tests.pipeline.test_raw_source import send_records

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STATES_LIMITS = tuple(map(int, spark_version.split(".")[:2])) >= (4, 2)
"""Since 4.2, Spark passes a query's trigger and limits."""
TRIGGERS: dict[str, dict[str, Any]] = {
    "availableNow": {"availableNow": True},
    "once": {"once": True},
    "processingTime": {"processingTime": "0 seconds"},
}
BATCHES = {"availableNow": [150] * 4, "once": [600], "processingTime": [150] * 4}
"""The sizes of the batches in Spark's own source. The first test compares them if that source is installed."""


def record_counts_of_batches(
    spark: SparkSession, bootstrap: str, topic: str, folder: Path, kind: str, **options: str
) -> list[int]:
    """Return the number of records in each batch of 150 until everything is read."""
    source = options.pop("source", "sluicegate")
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    bounds = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "150"}
    frame = reader.options(**bounds, **options).load().select("partition", "offset")
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / source / kind))
    query = writer.trigger(**TRIGGERS[kind]).start()
    try:
        if kind == "processingTime":
            query.processAllAvailable()
        else:
            query.awaitTermination()
    finally:
        query.stop()
    return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]


@pytest.fixture(scope="module")
def topic(kafka_bootstrap: str) -> str:
    """Return a topic of 600 records in three partitions."""
    found = create_topic(kafka_bootstrap, UNVALIDATED)
    send_records(kafka_bootstrap, found, 600)
    return found


@needs_sparks_own
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_sparks_own_source_has_the_expected_batch_sizes(
    trigger: str, spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    assert (
        record_counts_of_batches(spark, kafka_bootstrap, topic, tmp_path, trigger, source="kafka") == BATCHES[trigger]
    )


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_every_trigger_reads_all_records(
    trigger: str, spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    found = record_counts_of_batches(spark, kafka_bootstrap, topic, tmp_path, trigger, trigger=trigger)

    one_batch = trigger == "availableNow" and not STATES_LIMITS
    assert found == ([600] if one_batch else BATCHES[trigger])


def test_rejects_a_limit_without_a_trigger_before_spark_4_2(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    if STATES_LIMITS:
        assert (
            record_counts_of_batches(spark, kafka_bootstrap, topic, tmp_path, "availableNow") == BATCHES["availableNow"]
        )
        return
    with pytest.raises(StreamingQueryException, match="Add the option trigger=processingTime"):
        record_counts_of_batches(spark, kafka_bootstrap, topic, tmp_path, "availableNow")
