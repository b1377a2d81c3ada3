"""Work of which only what comes of it is a row, planned in the driver and dealt out to tasks."""

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
    """The rows of `work` over all items; it runs on executors, with whatever it holds pickled.

    Each item is a task, or, where there are many more than cores, shares one with others, so that tasks are of about
    the same size. A task works on so many items `at_once`, for work that mostly waits.
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
    """Into how many tasks work is dealt out: some a core, so that none waits long for the last one."""
    return _TASKS_A_CORE * spark.sparkContext.defaultParallelism


def dealt(items: Sequence[T], size: Callable[[T], int], at_most: int) -> list[list[T]]:
    """Into so many groups at most, the largest item first, each to the group that has least."""
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
