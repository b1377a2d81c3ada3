"""Every record that a repair changes, and every damaged one that it leaves, before anything is written."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair.correction import NAMES, correct
from sluicegate.pipeline.jobs.repair.odd_headers import have_odd_headers
from sluicegate.pipeline.jobs.repair.plan import PartitionPlan, Plan
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.pieces import cut
from sluicegate.pipeline.source.reading import read_rows
from sluicegate.pipeline.source.tasks import over, tasks_at_most
from sluicegate.pipeline.topics import Topics

_COLUMNS = "topic,partition,offset,timestamp,producer_id,headers_binary"
_PASSES_OVER = {"failOnDataLoss": "false", "failOnUnreadable": "false"}  # obstacles name both
DDL = (
    "topic string, partition int, offset bigint, producer_id bigint, damage string, before bigint, after bigint, "
    "solved boolean, may_be_sound boolean, odd_header boolean"
)


def damaged(spark: SparkSession, topics: Topics, plan: Plan) -> DataFrame:
    """One row for each damaged record of the plan's ranges; `after` is `before` where it was not `solved`.

    One too, with a damage of null, for each other that has an `odd_header`, whose name client
    libraries do not write.
    """
    options = source_options({**topics.options, "columns": _COLUMNS, **_PASSES_OVER})

    def of_piece(each: tuple[PartitionPlan, OffsetRange]) -> Iterable[pa.RecordBatch]:
        its, wanted = each
        return (_damaged(batch, its) for batch in read_rows(options, wanted))

    partitions = cut([each.source for each in plan.partitions], tasks_at_most(spark))
    pieces = [(each, piece.range) for each, its in zip(plan.partitions, partitions, strict=True) for piece in its]
    return over(spark, pieces, lambda each: each[1].size, of_piece, DDL)


def _damaged(batch: pa.RecordBatch, plan: PartitionPlan) -> pa.RecordBatch:
    """Those of one Arrow batch."""
    before, offsets = batch["timestamp"].to_numpy(), batch["offset"].to_numpy()
    found = correct(before, offsets, plan.clock, plan.rules)
    odd = have_odd_headers(batch["headers_binary"])
    places = np.flatnonzero(found.kinds.astype(np.bool_) | odd)
    kept = batch.take(pa.array(places))
    added = {
        "damage": pa.array([NAMES[kind] or None for kind in found.kinds[places]], pa.string()),
        "odd_header": pa.array(odd[places]),
        "before": kept["timestamp"],
        "after": pa.array(found.after[places]),
        "solved": pa.array(found.solved[places]),
        "may_be_sound": pa.array(found.may_be_sound[places]),
    }
    names = [column.split()[0] for column in DDL.split(", ")]
    return pa.RecordBatch.from_arrays([added[name] if name in added else kept[name] for name in names], names)


def before_and_after(listed: DataFrame) -> list[dict[str, Any]]:
    """By topic, producer, damage and whether they may be sound: how many, from what to what, an example of each."""
    grouped = (
        listed.where(f.col("damage").isNotNull())
        .groupBy("topic", "producer_id", "damage", "solved", "may_be_sound")
        .agg(
            f.count("*").alias("records"),
            f.min("after").alias("earliest_after"),
            f.max("after").alias("latest_after"),
            f.min_by("before", f.struct("partition", "offset")).alias("example_before"),
            f.min_by("after", f.struct("partition", "offset")).alias("example_after"),
            f.min_by(f.struct("partition", "offset"), f.struct("partition", "offset")).alias("example_at"),
        )
    )
    rows = grouped.orderBy("topic", "producer_id", "damage", "may_be_sound").collect()
    return [row.asDict(recursive=True) for row in rows]
