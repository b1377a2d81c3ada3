"""Work of which only what comes of it is a row: one task for each item, planned in the driver."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.source.zip_imports import forget_zip_importers

T = TypeVar("T")


def over(spark: SparkSession, items: Sequence[T], work: Callable[[T], pa.Table], ddl: str) -> DataFrame:
    """The rows of `work` over all items; it runs on executors, with whatever it holds pickled."""
    count = len(items)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        forget_zip_importers()
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from work(items[number]).to_batches()

    return spark.range(0, count, 1, max(count, 1)).mapInArrow(task, ddl)
