"""Event time for DataFrames of the raw source, batch or stream.

    events = with_event_time(spark.readStream.format("sluicegate")....load(), LogAndSkipOnInvalidTimestamp())
    events.withWatermark("event_time", "10 minutes").groupBy(window("event_time", "1 hour")).count()

Spark's state store keeps the partition's time between micro-batches and restarts.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType

from sluicegate.pipeline.jobs.extract.extractors import (
    NO_TIME,
    FailOnInvalidTimestamp,
    InvalidTimestamp,
    TimestampExtractor,
    TooLate,
)
from sluicegate.pipeline.runs.argument_checks import BadParameter
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
_LATE = "later than Spark's latest timestamp"
_log = logging.getLogger(__name__)


def with_event_time(
    frame: DataFrame, extractor: TimestampExtractor | None = None, too_late: TooLate = TooLate.FAIL
) -> DataFrame:
    """Return the frame's rows with a column `event_time`, without rows that the extractor or `too_late` skips.

    The progress of each micro-batch reports these observed metrics: `skipped`, `read`, and `partitions`, a list of
    (topic, partition, skipped). `frame` needs the columns topic, partition, offset and timestamp of the raw source.
    Default extractor: FailOnInvalidTimestamp. Raises BadParameter.
    """
    rows = _with_times(frame, extractor, too_late)
    skipped_partitions = f.when(f.col(_SKIPPED) > 0, f.struct(*_PARTITION, f.col(_SKIPPED).alias("skipped")))
    observed = rows.observe(
        SKIPPED_METRIC,
        f.coalesce(f.sum(_SKIPPED), f.lit(0)).alias("skipped"),
        f.count("*").alias("read"),
        f.collect_list(skipped_partitions).alias("partitions"),
    )
    return observed.where(f.col(_MS).isNull() | (f.col(_MS) >= 0)).drop(_SKIPPED, _MS)


def extracted(
    frame: DataFrame, extractor: TimestampExtractor | None = None, too_late: TooLate = TooLate.FAIL
) -> DataFrame:
    """Return all rows; `event_time` is null for skipped ones. Raises BadParameter."""
    return _with_times(frame, extractor, too_late).drop(_SKIPPED, _MS)


def _with_times(frame: DataFrame, extractor: TimestampExtractor | None, too_late: TooLate) -> DataFrame:
    """Add the event time in ms: negative for skipped records, null for records kept without a time.

    In each micro-batch, one row of each partition has the number of its skipped records.
    """
    from sluicegate.pipeline.jobs.parameters import checked_value  # noqa: PLC0415  # executors need none of it

    frame = checked_value("frame", frame, is_optional=False)
    extractor = checked_value("extractor", extractor, is_optional=True)
    too_late = checked_value("too_late", too_late, is_optional=False)
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise BadParameter(
            f"frame: expected the columns {', '.join(_NEEDED)} of the raw source, but it lacks {', '.join(missing)}"
        )
    schema = StructType([*frame.schema.fields, StructField(_MS, LongType()), StructField(_SKIPPED, LongType())])
    chosen = extractor if extractor is not None else FailOnInvalidTimestamp()
    processor = _EventTimes(chosen, frame.columns, too_late)
    rows = frame.groupBy(*_PARTITION).transformWithStateInPandas(processor, schema, "Append", "None")
    moment = f.when(f.col(_MS) >= 0, f.timestamp_millis(_MS))
    return rows.withColumn(EVENT_TIME, moment)


class _EventTimes(StatefulProcessor):
    """Computes the event times of a partition's records in the order of their offsets."""

    def __init__(self, extractor: TimestampExtractor, columns: Sequence[str], too_late: TooLate) -> None:
        self._extractor = extractor
        self._too_late = too_late
        self._columns = list(columns)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Keep the handle. Spark calls this in each task."""
        self._time = handle.getValueState("partition_time", StructType([StructField("ms", LongType())]))

    def handleInputRows(self, key: Any, rows: "Iterator[pd.DataFrame]", timerValues: Any) -> "Iterator[pd.DataFrame]":  # noqa: N802, N803  # Spark's names
        """Process one micro-batch of one partition."""
        import pandas as pd  # noqa: PLC0415  # takes seconds to import

        batch = pd.concat(rows).sort_values("offset", ignore_index=True)
        state = self._time.get()
        previous = NO_TIME if state is None else int(state[0])
        times: list[int | None] = []
        for record in batch[self._columns].itertuples(index=False):
            found = self._extractor.extract(record, previous)
            if found <= LATEST_MS:
                times.append(found)
                previous = max(previous, found)
            elif self._too_late is TooLate.FAIL:
                raise InvalidTimestamp(_beyond(record, found))
            elif self._too_late is TooLate.SKIP:
                _log.warning("%s-%d offset %d skipped: %s", record.topic, record.partition, record.offset, _LATE)
                times.append(NO_TIME)
            else:
                times.append(None)
                previous = found
        self._time.update((previous,))
        batch[_MS] = pd.array(times, dtype="Int64")
        batch[_SKIPPED] = 0
        batch.loc[0, _SKIPPED] = sum(found is not None and found < 0 for found in times)
        yield batch

    def close(self) -> None:
        """Do nothing, because there are no resources."""


def _beyond(record: Any, found: int) -> str:
    place = f"{record.topic}-{record.partition} offset {record.offset}"
    return (
        f"{place}: the event time {found} is {_LATE}; it {diagnose(found, time.time_ns() // 1_000_000)}. "
        "Your own extractor can correct the time, too_late=TooLate.SKIP drops such records, TooLate.NULL keeps them "
        "without a time, and sluicegate-spark repair fixes the topic"
    )
