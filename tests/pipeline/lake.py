"""`sluicegate-spark` where Spark has Delta Lake and Iceberg, as its users name their jars; and what it wrote, read
back.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.pipeline.commands import ENVIRONMENT, Kept

JARS = Path(__file__).parent.parent.parent / ".tables"
_CATALOG = "spark.sql.catalog.lake"


@cache
def _environment() -> dict[str, str]:
    """With a catalog of Iceberg's, `lake`, beside the jars."""
    folder = Path(mkdtemp(prefix="sluicegate-lake-"))
    settings = {
        "spark.jars": ",".join(str(jar) for jar in sorted(JARS.glob("*.jar"))),
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "hadoop",
        f"{_CATALOG}.warehouse": str(folder / "warehouse"),
    }
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return {**ENVIRONMENT, "SPARK_CONF_DIR": str(folder)}


@cache
def _kept() -> Kept:
    return Kept(_environment())


def run_in_lake(*arguments: str, status: int = 0) -> str:
    """As `tests.pipeline.commands.run`."""
    ended, told = _kept().run([*arguments, "--master", "local[2]"])
    assert ended == status, told
    return told


def read_back(*queries: str) -> list[list[dict[str, Any]]]:
    """The rows of each query, by a session of Spark's own that knows nothing of ours. `delta.`/path/`` and
    `iceberg.`/path/`` stand for tables in folders.
    """
    told = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.lake_reader", *queries],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=_environment(),
    )
    assert told.returncode == 0, told.stderr
    found: list[list[dict[str, Any]]] = json.loads(told.stdout.splitlines()[-1])
    return found
