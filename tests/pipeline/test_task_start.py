"""A worker skips some work at startup, and pandas still works on request."""

import subprocess
import sys

LEFT_OUT = "from sluicegate.pipeline.source.tasks import leave_pandas_out; leave_pandas_out()"
MAKES = "import sys; import pyarrow as pa; pa.array([1]); assert 'pandas' not in sys.modules"


def ends_well(*lines: str) -> None:
    message = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert message.returncode == 0, message.stderr


def test_arrays_are_made_without_pandas() -> None:
    ends_well(LEFT_OUT, MAKES)


def test_pandas_is_imported_when_a_series_is_requested() -> None:
    ends_well(LEFT_OUT, MAKES, "assert pa.array([1, 2]).to_pandas().sum() == 3", "assert 'pandas' in sys.modules")


def test_pandas_conversions_work_after_import_is_blocked() -> None:
    ends_well(
        LEFT_OUT,
        MAKES,
        "pa.array([1]).to_pandas()",  # as Spark does with the argument of a user's function
        "import pandas as pd",
        "assert pa.array(pd.Series([1.0, None])).null_count == 1",
        "assert pa.Table.from_pandas(pd.DataFrame({'a': [1.0, None]}))['a'].null_count == 1",
    )


def test_garbage_collection_skips_objects_from_before_the_first_task() -> None:
    ends_well(
        "import gc; from sluicegate.pipeline.source.tasks import begin_task",
        "before = len(gc.get_objects())",
        "begin_task()",
        "assert len(gc.get_objects()) < before / 100",
        "class Task: pass",
        "task = Task(); task.itself = task; del task",
        "begin_task()",
        "assert gc.collect() > 0",
    )
