"""Event times of the built-in extractors as Spark's own expressions: no record passes through Python for them.

They do for the job `extract` what `pipeline.extract.extractors` does record by record; a test holds the two together.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from pipeline.extract.event_time import EVENT_TIME, LATEST_MS
from pipeline.extract.extractors import NO_TIME
from validation.units import unit_ranges

NAMES = ("fail", "skip", "previous", "wallclock")
PARTITION = ("topic", "partition")
_WAYS = "--extractor skip leaves such records out, --extractor previous takes the partition's time, and "
_REPAIR = "sluicegate-spark repair mends the topic"
Times = Mapping[tuple[str, int], int]
"""By topic and partition, the highest event time so far (ms)."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """By its name on the command line, one of `NAMES`."""

    name: str

    @property
    def skips(self) -> bool:
        """Whether invalid records are left out."""
        return self.name == "skip"

    @property
    def needs_times(self) -> bool:
        """Whether an invalid record's event time depends on those before it."""
        return self.name == "previous"

    def with_event_time(self, rows: DataFrame) -> DataFrame:
        """Rows of a batch with `event_time`; those that are skipped, or take the time before them, with null."""
        if self.name == "wallclock":
            return rows.withColumn(EVENT_TIME, f.current_timestamp())
        time_ms = f.col("timestamp")
        invalid = f.raise_error(_negative(_WAYS + _REPAIR)).cast("timestamp") if self.name == "fail" else None
        checked = f.when(time_ms > LATEST_MS, f.raise_error(_too_late()).cast("timestamp"))
        return rows.withColumn(EVENT_TIME, checked.when(time_ms < 0, invalid).otherwise(f.timestamp_millis(time_ms)))


def with_previous_time(rows: DataFrame, before: Times) -> DataFrame:
    """Rows whose `event_time` is null get the highest before them in their partition, or that of `before`."""
    known = rows.sparkSession.createDataFrame(
        [(topic, partition, at) for (topic, partition), at in before.items()],
        "topic string, partition int, before_ms bigint",
    )
    earlier = Window.partitionBy(*PARTITION).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    highest = f.greatest(f.max(f.unix_millis(EVENT_TIME)).over(earlier), f.col("before_ms"), f.lit(NO_TIME))
    joined = rows.join(f.broadcast(known), list(PARTITION), "left").withColumn("highest_ms", highest)
    none = f.raise_error(_negative("no record before it in its partition has a valid one to go by")).cast("timestamp")
    found = f.when(f.col("highest_ms") < 0, none).otherwise(f.timestamp_millis("highest_ms"))
    return joined.withColumn(EVENT_TIME, f.coalesce(EVENT_TIME, found)).select(*rows.columns)


def _place() -> list[Column]:
    partition, offset = (f.col(name).cast("string") for name in ("partition", "offset"))
    return [f.col("topic"), f.lit("-"), partition, f.lit(" offset "), offset]


def _negative(advice: str) -> Column:
    says = f.lit(" has the timestamp "), f.col("timestamp").cast("string"), f.lit(f", which is negative: {advice}")
    return f.concat(*_place(), *says)


def _too_late() -> Column:
    looks = f.lit("")
    for each in unit_ranges(time.time_ns() // 1_000_000):
        its = f.col("timestamp").between(each.low, each.high)
        looks = f.when(its, f.lit(f"; it looks like {each.unit}")).otherwise(looks)
    number, beyond = f.col("timestamp").cast("string"), f.lit(" is later than Spark's timestamps reach")
    says = f.lit(": the event time "), number, beyond
    return f.concat(*_place(), *says, looks, f.lit(f". {_REPAIR}"))
