"""Event time for frames of the raw source, batch or stream.

    events = with_event_time(spark.readStream.format("sluicegate")....load(), LogAndSkipOnInvalidTimestamp())
    events.withWatermark("event_time", "10 minutes").groupBy(window("event_time", "1 hour")).count()

The partition's time is kept in Spark's state store from micro-batch to micro-batch and over restarts.
"""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType

from sluicegate.pipeline.extract.extractors import NO_TIME, FailOnInvalidTimestamp, InvalidTimestamp, TimestampExtractor
from sluicegate.validation.units import diagnose

if TYPE_CHECKING:
    import pandas as pd

EVENT_TIME = "event_time"
_MS = "event_time_ms"
_SKIPPED = "skipped_in_batch"
_PARTITION = ("topic", "partition")
_NEEDED = (*_PARTITION, "offset", "timestamp")
LATEST_MS = (2**63 - 1) // 1000
SKIPPED_METRIC = "skipped records"


def with_event_time(frame: DataFrame, extractor: TimestampExtractor | None = None) -> DataFrame:
    """The frame's rows with a column `event_time`, without those that the extractor skips.

    How many those are stands in the progress of each micro-batch under observed metrics: `skipped`, `read`, and
    `partitions`, a list of (topic, partition, skipped) of those where there were some. `frame` needs the columns topic,
    partition, offset and timestamp, as the raw source gives them. Default: FailOnInvalidTimestamp.
    """
    told = f.when(f.col(_SKIPPED) > 0, f.struct(*_PARTITION, f.col(_SKIPPED).alias("skipped")))
    observed = _with_times(frame, extractor).observe(
        SKIPPED_METRIC,
        f.coalesce(f.sum(_SKIPPED), f.lit(0)).alias("skipped"),
        f.count("*").alias("read"),
        f.collect_list(told).alias("partitions"),
    )
    return observed.where(f.col(EVENT_TIME).isNotNull()).drop(_SKIPPED)


def extracted(frame: DataFrame, extractor: TimestampExtractor | None = None) -> DataFrame:
    """All rows, `event_time` null for those that are skipped."""
    return _with_times(frame, extractor).drop(_SKIPPED)


def _with_times(frame: DataFrame, extractor: TimestampExtractor | None) -> DataFrame:
    """And on one row of each partition in a micro-batch, how many of its records are skipped."""
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise ValueError(f"the frame lacks {', '.join(missing)}: event time needs the columns {', '.join(_NEEDED)}")
    schema = StructType([*frame.schema.fields, StructField(_MS, LongType()), StructField(_SKIPPED, LongType())])
    processor = _EventTimes(extractor if extractor is not None else FailOnInvalidTimestamp(), frame.columns)
    rows = frame.groupBy(*_PARTITION).transformWithStateInPandas(processor, schema, "Append", "None")
    moment = f.when(f.col(_MS) >= 0, f.timestamp_millis(_MS))
    return rows.withColumn(EVENT_TIME, moment).drop(_MS)


class _EventTimes(StatefulProcessor):
    """A partition's records in the order of their offsets, each with its event time."""

    def __init__(self, extractor: TimestampExtractor, columns: Sequence[str]) -> None:
        self._extractor = extractor
        self._columns = list(columns)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called in each task."""
        self._time = handle.getValueState("partition_time", StructType([StructField("ms", LongType())]))

    def handleInputRows(self, key: Any, rows: "Iterator[pd.DataFrame]", timerValues: Any) -> "Iterator[pd.DataFrame]":  # noqa: N802, N803  # Spark's names
        """One micro-batch of one partition."""
        import pandas as pd  # noqa: PLC0415  # seconds, which the command's other jobs need not wait

        batch = pd.concat(rows).sort_values("offset", ignore_index=True)
        held = self._time.get()
        previous = NO_TIME if held is None else int(held[0])
        times = []
        for record in batch[self._columns].itertuples(index=False):
            found = self._extractor.extract(record, previous)
            if found > LATEST_MS:
                raise InvalidTimestamp(_beyond(record, found))
            times.append(found)
            previous = max(previous, found)
        self._time.update((previous,))
        batch[_MS] = pd.array(times, dtype="int64")
        batch[_SKIPPED] = 0
        batch.loc[0, _SKIPPED] = sum(found < 0 for found in times)
        yield batch

    def close(self) -> None:
        """Nothing is held."""


def _beyond(record: Any, found: int) -> str:
    place = f"{record.topic}-{record.partition} offset {record.offset}"
    return (
        f"{place}: the event time {found} is later than Spark's timestamps reach; it "
        f"{diagnose(found, time.time_ns() // 1_000_000)}. An extractor of one's own can "
        "correct it, and sluicegate-spark repair mends the topic"
    )
