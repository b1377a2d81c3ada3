"""What a task of ours does first, so that Spark's Python workers lose no time to what none of our work needs.

Before each task a worker calls `importlib.invalidate_caches`, and a zip importer then reads the directory of its
archive again at once: there is one for each package of pyspark.zip, and a task takes 0.14 s longer. An importer that is
not remembered is made anew when something is imported from its archive, which by then is hardly ever.

PyArrow imports pandas, a second of each worker's time, to see whether the first array that it makes is of a series.
None of ours is. Whoever asks it for pandas later has it imported then; only an array that is made of a series before
that, without asking, would be read as a plain sequence. So it is left out where no code but ours makes arrays: in the
sessions that our commands begin.

After each task a worker collects garbage, and then looks through all that is imported, 35 ms of processor time. What is
there when its first task begins is set aside from that, as `gc.freeze` is for.
"""

import gc
import os
import sys
from zipimport import zipimporter

import pyarrow as pa

from sluicegate.pipeline.kafka import read_offsets

WITHOUT_PANDAS = "SLUICEGATE_WITHOUT_PANDAS"
"""Set where workers may leave pandas out."""


def begin_task() -> None:
    """Whatever is imported stays so, and what is read is counted for this task's driver."""
    read_offsets.begin_task()
    _forget_zip_importers()
    if gc.get_freeze_count() == 0:  # a second time would keep what is left of the task before
        gc.freeze()
    if WITHOUT_PANDAS in os.environ and "pandas" not in sys.modules:
        leave_pandas_out()


def _forget_zip_importers() -> None:
    """Forget those that this process remembers."""
    zips = [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]
    for path in zips:
        del sys.path_importer_cache[path]


def leave_pandas_out() -> None:
    """Let PyArrow, which looks once, look while there is none."""
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A finder of modules."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """Raises ModuleNotFoundError for pandas; others are found as ever."""
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)
