"""Every record that a repair changes, and every damaged one that it leaves, before anything is written."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.kafka.cluster import TopicPartition
from pipeline.repair.correction import NAMES, correct
from pipeline.repair.plan import PartitionPlan, Plan
from pipeline.topics import Topics

_COLUMNS = "topic,partition,offset,timestamp,producer_id"
DDL = (
    "topic string, partition int, offset bigint, producer_id bigint, damage string, before bigint, after bigint, "
    "solved boolean"
)


def damaged(spark: SparkSession, topics: Topics, plan: Plan) -> DataFrame:
    """One row for each damaged record of the plan's ranges; `after` is `before` where it was not `solved`."""
    of_partition = {each.source.of: each for each in plan.partitions}

    def correct_rows(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                yield _damaged(batch, of_partition)

    rows = topics.read(spark, "sluicegate", columns=_COLUMNS, **offsets_of(plan))
    return rows.mapInArrow(correct_rows, DDL)


def offsets_of(plan: Plan) -> dict[str, str]:
    """The plan's ranges as the raw source's options."""
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for each in plan.partitions:
        of = each.source.of
        starts.setdefault(of.topic, {})[str(of.partition)] = each.source.start
        ends.setdefault(of.topic, {})[str(of.partition)] = each.source.end
    return {"startingOffsets": json.dumps(starts), "endingOffsets": json.dumps(ends)}


def _damaged(batch: pa.RecordBatch, plans: dict[TopicPartition, PartitionPlan]) -> pa.RecordBatch:
    """Those of one Arrow batch; it comes from one task of the raw source, so it is of one partition."""
    of = TopicPartition(batch["topic"][0].as_py(), batch["partition"][0].as_py())
    before, offsets = batch["timestamp"].to_numpy(), batch["offset"].to_numpy()
    found = correct(before, offsets, plans[of].clock, plans[of].rules)
    places = np.flatnonzero(found.kinds)
    kept = batch.take(pa.array(places))
    added = {
        "damage": pa.array([NAMES[kind] for kind in found.kinds[places]], pa.string()),
        "before": kept["timestamp"],
        "after": pa.array(found.after[places]),
        "solved": pa.array(found.solved[places]),
    }
    names = [column.split()[0] for column in DDL.split(", ")]
    return pa.RecordBatch.from_arrays([added[name] if name in added else kept[name] for name in names], names)


def before_and_after(listed: DataFrame) -> list[dict[str, Any]]:
    """By topic, producer and damage: how many, from what to what, an example of each."""
    grouped = listed.groupBy("topic", "producer_id", "damage", "solved").agg(
        f.count("*").alias("records"),
        f.min("after").alias("earliest_after"),
        f.max("after").alias("latest_after"),
        f.min_by("before", f.struct("partition", "offset")).alias("example_before"),
        f.min_by("after", f.struct("partition", "offset")).alias("example_after"),
        f.min_by(f.struct("partition", "offset"), f.struct("partition", "offset")).alias("example_at"),
    )
    rows = grouped.orderBy("topic", "producer_id", "damage").collect()
    return [row.asDict(recursive=True) for row in rows]
