"""Runs `sluicegate-spark` with Delta Lake and Iceberg, with jars configured as users do, and reads the results."""

import atexit
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyspark

from sluicegate.pipeline.runs.tables import TableFormat, minor_of, package_of, table_location
from tests.broker.child_processes import killed_with_parent
from tests.pipeline.commands import ENVIRONMENT, RepeatedCommand

JARS = Path(__file__).parent.parent.parent / ".tables" / minor_of(pyspark.__version__)
_CATALOG = "spark.sql.catalog.lake"


@cache
def _environment() -> dict[str, str]:
    """Return an environment with the jars and the Iceberg catalog `lake`, as an option of spark-submit. A folder of
    settings would precede the jars in the class path, and then Java would not use the class archive.
    """
    folder = Path(mkdtemp(prefix="sluicegate-lake-"))
    settings = {
        "spark.jars": ",".join(str(jar) for jar in sorted(JARS.glob("*.jar"))),
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "hadoop",
        f"{_CATALOG}.warehouse": str(folder / "warehouse"),
        "spark.databricks.delta.snapshotPartitions": "2",  # the default is 50 tasks for each read from a small table
    }
    file = folder / "lake.conf"
    file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return {**ENVIRONMENT, "PYSPARK_SUBMIT_ARGS": f"--properties-file {file} pyspark-shell"}


@cache
def _kept() -> RepeatedCommand:
    return RepeatedCommand(_environment(), _settings())


def _settings() -> Mapping[str, str]:
    """Return what a session must start with for tables of every format: only Delta Lake requires something."""
    has_delta = package_of(TableFormat.DELTA, pyspark.__version__) is not None
    return table_location("", TableFormat.DELTA).settings() if has_delta else {}


def run_in_lake(*arguments: str, status: int = 0) -> str:
    """As `tests.pipeline.commands.run`."""
    return _kept().run(arguments, status)


class _Reader:
    """A Spark session without sluicegate (see `lake_reader`)."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.pipeline.lake_reader", json.dumps(dict(_settings()))]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            killed_with_parent(command), stdin=pipe, stdout=pipe, text=True, env=_environment()
        )
        atexit.register(self._end)

    def ask(self, queries: Sequence[str]) -> list[list[dict[str, Any]]]:
        """The rows of each query."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(queries), file=self._process.stdin, flush=True)
        found: list[list[dict[str, Any]]] = json.loads(self._process.stdout.readline())
        return found

    def _end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@cache
def _reader() -> _Reader:
    return _Reader()


def read_back(*queries: str) -> list[list[dict[str, Any]]]:
    """Return the rows of each query from a Spark session without sluicegate. Queries may name tables as
    `delta.`/path/``."""
    return _reader().ask(queries)
