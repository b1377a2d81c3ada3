"""Headers that client libraries do not write as they are: names that are not UTF-8, or that hold a zero byte."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from sluicegate.pipeline.kafka.cluster import TopicPartition


@dataclass(frozen=True, slots=True)
class OddHeaders:
    """How many `records` of a partition have one, and the offset of the `first`."""

    of: TopicPartition
    records: int
    first: int

    def __str__(self) -> str:
        return (
            f"{self.of}: {self.records:,} records, the first at offset {self.first}, have a header whose name client "
            "libraries do not write (not UTF-8, or with a zero byte); their partition is written byte by byte"
        )


def odd_headers_in(listed: DataFrame) -> list[OddHeaders]:
    """By partition, from the rows of `sluicegate.pipeline.jobs.repair.listing`."""
    odd = listed.where("odd_header").groupBy("topic", "partition")
    rows = odd.agg(f.count("*").alias("records"), f.min("offset").alias("first")).orderBy("topic", "partition")
    return [OddHeaders(TopicPartition(row.topic, row.partition), row.records, row["first"]) for row in rows.collect()]


def have_odd_headers(headers: pa.ListArray) -> NDArray[np.bool_]:
    """Which records have one; names are bytes."""
    odd = np.zeros(len(headers), np.bool_)
    names = headers.flatten().field("key")
    if not _are_plain(names):
        parents = pc.list_parent_indices(headers).to_numpy()
        odd[[parents[i] for i in range(len(names)) if not _are_plain(names[i : i + 1])]] = True
    return odd


def _are_plain(names: pa.Array) -> bool:
    try:
        names.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return not pc.any(pc.match_substring(names, "\0")).as_py()
