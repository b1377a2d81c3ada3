"""Startup of each task, which avoids work that Spark's Python workers repeat for every task.

Before each task a worker calls `importlib.invalidate_caches`, which makes every zip importer read its archive's
directory again. There is one for each package of pyspark.zip, which adds 0.14 s to a task. An importer that is removed
is created again when something is imported from its archive, which is rare by then.

PyArrow imports pandas when it makes its first array, to check whether the input is a series; that takes a second of
each worker. Our input never is. If pandas is imported later, it works, except that an array made of a series before
would be read as a plain sequence. So pandas is only skipped in sessions of our own commands, where no other code makes
arrays.

After each task a worker collects garbage, which scans everything that is imported: 35 ms of CPU time. `gc.freeze`
excludes what exists when the first task begins.
"""

import gc
import os
import sys
from zipimport import zipimporter

import pyarrow as pa

from sluicegate.pipeline.kafka import read_offsets

WITHOUT_PANDAS = "SLUICEGATE_WITHOUT_PANDAS"
"""Environment variable that allows workers to skip pandas."""


def begin_task() -> None:
    """Prepare the process for a task, and count what it reads for its driver."""
    read_offsets.begin_task()
    _forget_zip_importers()
    if gc.get_freeze_count() == 0:  # freezing again would keep the previous task's garbage
        gc.freeze()
    if WITHOUT_PANDAS in os.environ and "pandas" not in sys.modules:
        leave_pandas_out()


def _forget_zip_importers() -> None:
    """Remove the zip importers of this process."""
    zips = [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]
    for path in zips:
        del sys.path_importer_cache[path]


def leave_pandas_out() -> None:
    """Let PyArrow's one check for pandas find none."""
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A module finder that hides pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """Raises ModuleNotFoundError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)
