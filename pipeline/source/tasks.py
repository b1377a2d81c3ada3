"""Runs work in Spark tasks: planned by the driver, with Arrow rows as results."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import heapify, heapreplace
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline import progress_line
from sluicegate.pipeline.source.task_start import begin_task

T = TypeVar("T")
_TASKS_A_CORE = 4


def over(
    spark: SparkSession,
    items: Sequence[T],
    size: Callable[[T], int],
    work: Callable[[T], Iterable[pa.RecordBatch]],
    ddl: str,
    at_once: int = 1,
) -> DataFrame:
    """Return the rows of `work` for all items. It runs on executors with its closure pickled.

    Each item is a task; if there are many more items than cores, items share tasks of similar size. A task processes
    `at_once` items in parallel, for work that mostly waits.
    """
    groups = dealt(items, size, tasks_at_most(spark))
    progress_line.plan(sum(size(item) for item in items))
    count = len(groups)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            for number in batch["id"].to_pylist():
                group = groups[number]
                if at_once == 1 or len(group) == 1:
                    for item in group:
                        yield from work(item)
                else:
                    with ThreadPoolExecutor(at_once) as pool:
                        for found in pool.map(lambda item: list(work(item)), group):
                            yield from found

    return spark.range(0, count, 1, max(count, 1)).mapInArrow(task, ddl)


def tasks_at_most(spark: SparkSession) -> int:
    """Return the maximum number of tasks: several for each core, so that none waits long for the last one."""
    return _TASKS_A_CORE * spark.sparkContext.defaultParallelism


def dealt(items: Sequence[T], size: Callable[[T], int], at_most: int) -> list[list[T]]:
    """Distribute items to at most `at_most` groups: the largest first, each to the smallest group."""
    if len(items) <= at_most:
        return [[item] for item in items]
    groups: list[list[T]] = [[] for _ in range(at_most)]
    filled = [(0, number) for number in range(at_most)]
    heapify(filled)
    for item in sorted(items, key=size, reverse=True):
        least, number = filled[0]
        groups[number].append(item)
        heapreplace(filled, (least + size(item) + 1, number))
    return groups
