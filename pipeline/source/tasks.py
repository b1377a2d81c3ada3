"""Runs work in Spark tasks, which the driver plans and which return Arrow rows.

At its start, each task avoids work that Spark's Python workers repeat for every task. Before each task, a worker calls
`importlib.invalidate_caches`, which makes every zip importer read its archive's directory again. There is one importer
for each package in pyspark.zip, which adds 0.14 s to a task. The task therefore removes these importers. Python creates
an importer again when something is imported from its archive, which rarely happens by then.

PyArrow imports pandas when it makes its first array, to check whether the input is a series; this takes a second in
each worker. Our input never is a series. Importing pandas later still works, with one exception: until then, PyArrow
would read a series as a plain sequence. Pandas is therefore only skipped in sessions of our own commands, because no
other code makes arrays in them.

After each task, a worker collects garbage, which scans all imported objects and takes 35 ms of CPU time. `gc.freeze`
excludes the objects that exist when the first task begins.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from heapq import heapify, heapreplace
from typing import TypeVar
from zipimport import zipimporter

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.kafka import read_offsets
from sluicegate.pipeline.source import progress_line

WITHOUT_PANDAS = "SLUICEGATE_WITHOUT_PANDAS"
"""Environment variable that allows workers to skip pandas."""


def begin_task() -> None:
    """Prepare the process for a task, and begin to report the offsets that it reads to its driver."""
    read_offsets.begin_task()
    _forget_zip_importers()
    _freeze_once()
    if WITHOUT_PANDAS in os.environ and "pandas" not in sys.modules:
        leave_pandas_out()


@cache
def _freeze_once() -> None:
    """Freeze the existing objects when the process begins its first task.

    Freezing again would keep the previous task's garbage. `gc.get_freeze_count` is no alternative, because it visits
    every frozen object, which takes 5 ms.
    """
    gc.freeze()


def _forget_zip_importers() -> None:
    """Remove this process's zip importers."""
    zips = [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]
    for path in zips:
        del sys.path_importer_cache[path]


def leave_pandas_out() -> None:
    """Make PyArrow's only check for pandas fail."""
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A module finder that hides pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)


T = TypeVar("T")
_TASKS_A_CORE = 4


def map_in_tasks(
    spark: SparkSession,
    items: Sequence[T],
    size: Callable[[T], int],
    work: Callable[[T], Iterable[pa.RecordBatch]],
    ddl: str,
    at_once: int = 1,
) -> DataFrame:
    """Return the rows of `work` for all items. `work` runs on executors, so its closure is pickled.

    Each item is a task; if there are many more items than cores, items share tasks of similar size. A task processes
    `at_once` items in parallel, which helps if the work mostly waits.
    """
    groups = distribute_items(items, size, tasks_at_most(spark))
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
    """Return the maximum number of tasks: several per core, so that no core waits long for the last task."""
    return _TASKS_A_CORE * spark.sparkContext.defaultParallelism


def distribute_items(items: Sequence[T], size: Callable[[T], int], at_most: int) -> list[list[T]]:
    """Distribute items over at most `at_most` groups: the largest items first, each to the smallest group."""
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
