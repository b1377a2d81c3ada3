"""Checks declared repairs against their plan or, without a plan, against general bounds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.profile.invalid_timestamps import InvalidTimestampKind, UncertainTimestampKind
from sluicegate.pipeline.jobs.repair.correction import NAMES, correct_timestamps
from sluicegate.pipeline.jobs.repair.plan import RepairPlan
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.validation.units import TimeUnit

_EARLIEST_MS = 788_918_400_000  # 1995; earlier times do not date a topic
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_PLACE = ["partition", "offset", "origin_partition", "origin_offset"]
_TIMELESS = (
    InvalidTimestampKind.ZERO.value,
    InvalidTimestampKind.NEGATIVE.value,
    InvalidTimestampKind.FUTURE.value,
    InvalidTimestampKind.IMPLAUSIBLE.value,
    UncertainTimestampKind.FUTURE.value,
)


def unit_is_wrong() -> Column:
    """Return whether a repair's corrected time differs from the result of converting its unit."""
    meant = (
        f.when(f.col("repair") == TimeUnit.SECONDS.value, f.col("original") * 1000)
        .when(f.col("repair") == TimeUnit.MICROSECONDS.value, f.expr("original div 1000"))
        .when(f.col("repair") == TimeUnit.NANOSECONDS.value, f.expr("original div 1000000"))
    )
    return f.coalesce(meant != f.col("timestamp"), f.lit(False))


def wrongly_converted(ours: DataFrame) -> DataFrame:
    """Return the wrongly converted repairs, by their positions in both topics."""
    return ours.where(unit_is_wrong()).select(*_PLACE)


def is_timeless() -> Column:
    """Return whether the time is an estimate."""
    return f.coalesce(f.col("repair").isin(*_TIMELESS), f.lit(False))


def is_plausible_time(now_ms: int) -> Column:
    """Return whether the time is plausible enough to bound estimates."""
    return ~is_timeless() & f.col("timestamp").between(_EARLIEST_MS, now_ms + _HOUR_MS)


def out_of_bounds(ours: DataFrame, blocks: list[dict[str, Any]], now_ms: int) -> DataFrame | None:
    """Return estimates outside the range of their partition's known times; None if there are none.

    `blocks` contain the ranges of both (see `sluicegate.pipeline.jobs.verify.job`).
    """
    by_partition: dict[int, list[dict[str, Any]]] = {}
    for block in blocks:
        by_partition.setdefault(block["place"][0], []).append(block)
    bounds: list[tuple[int, int, int]] = []
    for partition, its in by_partition.items():
        first = min((b["earliest"] for b in its if b["earliest"] is not None), default=_EARLIEST_MS) - _MINUTE_MS
        last = max((b["latest"] for b in its if b["latest"] is not None), default=now_ms + _HOUR_MS) + _MINUTE_MS
        estimated = [b[end] for b in its for end in ("least", "most") if b[end] is not None]
        if any(not first <= time <= last for time in estimated):
            bounds.append((partition, first, last))
    if not bounds:
        return None
    bound = f.broadcast(ours.sparkSession.createDataFrame(bounds, "partition int, first bigint, last bigint"))
    outside = ~f.col("timestamp").between(f.col("first"), f.col("last"))
    return ours.where(is_timeless()).join(bound, "partition").where(outside).select(*_PLACE)


def deviations_from_plan(ours: DataFrame, plan: RepairPlan, source: str) -> DataFrame:
    """Return the repairs that differ from the plan's corrections."""
    plans = {each.source.of: each for each in plan.partitions}

    def check(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            partitions = batch["origin_partition"].to_numpy()
            wrong = np.ones(len(batch), np.bool_)
            for partition in np.unique(partitions):
                planned, its = plans.get(TopicPartition(source, int(partition))), partitions == partition
                if planned is not None:
                    wrong[its] = _wrong(batch.filter(pa.array(its)), planned)
            yield batch.filter(pa.array(wrong)).select(_PLACE)

    declared = ours.where(f.col("repair").isNotNull())
    rows = declared.select(*_PLACE, "original", "timestamp", "repair")
    return rows.mapInArrow(check, rows.select(*_PLACE).schema)


def _wrong(rows: pa.RecordBatch, planned: Any) -> NDArray[np.bool_]:
    found = correct_timestamps(
        *(rows["original"].to_numpy(), rows["origin_offset"].to_numpy()), planned.clock, planned.times, planned.rules
    )
    kinds = np.array(NAMES, dtype="O")[found.kinds]
    right = (found.after == rows["timestamp"].to_numpy()) & (kinds == rows["repair"].to_numpy(zero_copy_only=False))
    return np.asarray(~right)
