"""Whether declared repairs are right: by the plan that they were made by, or, without it, by what bounds them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.profile.damage import Damage
from sluicegate.pipeline.repair.correction import NAMES, correct
from sluicegate.pipeline.repair.plan import Plan
from sluicegate.validation.units import Unit

_EARLIEST_MS = 788_918_400_000  # 1995: what is before tells nothing of when a topic was written
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_TIMELESS = (Damage.ZERO.value, Damage.NEGATIVE.value, Damage.FUTURE.value, Damage.IMPLAUSIBLE.value)


def unit_is_wrong() -> Column:
    """A repair that says a unit must be that unit's conversion."""
    meant = (
        f.when(f.col("repair") == Unit.SECONDS.value, f.col("original") * 1000)
        .when(f.col("repair") == Unit.MICROSECONDS.value, f.expr("original div 1000"))
        .when(f.col("repair") == Unit.NANOSECONDS.value, f.expr("original div 1000000"))
    )
    return f.coalesce(meant != f.col("timestamp"), f.lit(False))


def is_timeless() -> Column:
    """Whether the time is an estimate."""
    return f.coalesce(f.col("repair").isin(*_TIMELESS), f.lit(False))


def tells_a_time(now_ms: int) -> Column:
    """Whether the time is one that an estimate may lie between."""
    return ~is_timeless() & f.col("timestamp").between(_EARLIEST_MS, now_ms + _HOUR_MS)


def out_of_bounds(ours: DataFrame, blocks: list[dict[str, Any]], now_ms: int) -> int:
    """How many estimates lie before or behind every time of their partition that tells one. `blocks`: with the smallest
    and largest of both (see `sluicegate.pipeline.verify.job`).
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
        return 0
    bound = f.broadcast(ours.sparkSession.createDataFrame(bounds, "partition int, first bigint, last bigint"))
    outside = ~f.col("timestamp").between(f.col("first"), f.col("last"))
    return ours.where(is_timeless()).join(bound, "partition").where(outside).count()


def not_as_planned(ours: DataFrame, plan: Plan, source: str) -> int:
    """How many repairs differ from what the plan makes of their originals."""
    plans = {each.source.of: each for each in plan.partitions}

    def check(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        wrong = 0
        for batch in batches:
            partitions = batch["origin_partition"].to_numpy()
            for partition in np.unique(partitions):
                its = batch.filter(pa.array(partitions == partition))
                planned = plans.get(TopicPartition(source, int(partition)))
                wrong += len(its) if planned is None else _wrong(its, planned)
        yield pa.RecordBatch.from_pydict({"wrong": [wrong]})

    declared = ours.where(f.col("repair").isNotNull())
    rows = declared.select("origin_partition", "origin_offset", "original", "timestamp", "repair")
    return sum(row.wrong for row in rows.mapInArrow(check, "wrong bigint").collect())


def _wrong(rows: pa.RecordBatch, planned: Any) -> int:
    found = correct(rows["original"].to_numpy(), rows["origin_offset"].to_numpy(), planned.clock, planned.rules)
    kinds = np.array(NAMES, dtype="O")[found.kinds]
    right = (found.after == rows["timestamp"].to_numpy()) & (kinds == rows["repair"].to_numpy(zero_copy_only=False))
    return int((~right).sum())
