"""The Spark session that a job runs in: one of its own on this machine, or that of the cluster it was submitted to."""

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkAttributeError, PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.source.datasource import TopicSource
from sluicegate.pipeline.source.task_start import WITHOUT_PANDAS

_HERE = "local[*]"
_MASTER = re.compile(r"local(-cluster)?(\[[^\]]+\])?|yarn|(spark|k8s)://\S+")
_LOGGING = Path(__file__).with_name("log4j2.properties")
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Where spark-submit says how to reach the JVM that it has begun. What it was given (`spark.master`) is known only
there, and a SparkConf made before the session is empty."""
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CONNECT = "SPARK_REMOTE"
"""How the environment names a server of Spark Connect."""
_MOST_WORDS = 1 << 20
_NO_DRIVER = (
    "a job needs Spark's driver in its own process, because its results go where that driver's file systems lead, and "
    "a session of Spark Connect has none"
)


class NoSession(PipelineError):
    """Spark does not begin, or its session is of no use; the text says with what, and why."""


def session(
    job: str, master: str | None, settings: Mapping[str, str] = MappingProxyType({}), spark_log: Path | None = None
) -> SparkSession:
    """`master`: as Spark names them; None leaves it to spark-submit, and without that means this machine's cores.
    `settings`: what else the session begins with. `spark_log`: the file that Spark's own lines are added to, None drops
    them; what spark-submit has begun writes where it was told to.

    Raises NoSession.
    """
    if master is not None and _MASTER.fullmatch(master) is None:
        raise NoSession(f"--master {master} is none of local, local[N], local[*], spark://…, yarn and k8s://…")
    if _CONNECT in os.environ:
        raise NoSession(f"{_CONNECT} is set, and {_NO_DRIVER}: unset it, and give --master, or use spark-submit")
    builder = SparkSession.builder.appName(f"sluicegate {job}").config(map=dict(settings))
    builder = builder.config(f"spark.executorEnv.{WITHOUT_PANDAS}", "1")
    submitted = _SUBMITTED in os.environ
    chosen = master if master is not None else None if submitted else _HERE
    if chosen is not None:
        builder = builder.master(chosen)
        if chosen.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            builder = builder.config("spark.driver.memory", os.environ.get("SPARK_DRIVER_MEMORY", "2g"))
            builder = builder.config("spark.ui.enabled", "false")
            builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
            # Each shuffled part is a task, and for state a Python process's work: as many as can run at once.
            builder = builder.config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
    with _log_file(spark_log) as log:
        found = _begun_with(builder, log, chosen, begins_java=not submitted)
    found.sparkContext.setLogLevel("ERROR" if spark_log is None else "INFO")
    found.dataSource.register(TopicSource)
    return found


def _log_file(spark_log: Path | None) -> IO[bytes]:
    if spark_log is None:
        return tempfile.TemporaryFile()
    try:
        return spark_log.open("ab")
    except OSError as error:
        raise NoSession(f"--spark-log {spark_log} cannot be written: {error.strerror}") from error


def _begun_with(builder: Any, log: IO[bytes], chosen: str | None, *, begins_java: bool) -> SparkSession:
    """What Java, and the Python workers that it begins, print goes to `log` and not to the terminal."""
    try:
        if begins_java and SparkSession.getActiveSession() is None:
            conf = SparkConf().setAll(list(builder._options.items()))
            SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stderr": log}))
        return _begun(builder)
    except (Py4JJavaError, PySparkException) as error:
        told = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
        where = "the master that spark-submit was given" if chosen is None else f"--master {chosen}"
        raise NoSession(f"Spark does not begin with {where}: {told}{_last_words(log)}") from error


def _last_words(log: IO[bytes]) -> str:
    """What Java printed last, if it did not begin."""
    if not log.readable():
        return f" ({log.name} has Spark's own lines)"
    log.seek(0)
    lines = [line.strip() for line in log.read(_MOST_WORDS).decode(errors="replace").splitlines() if line.strip()]
    return f" ({lines[-1]})" if lines else ""


def check_driver(spark: SparkSession) -> None:
    """Raises NoSession for a session of Spark Connect."""
    try:
        spark.sparkContext  # noqa: B018  # that it is there
    except PySparkAttributeError as error:
        raise NoSession(
            f"{_NO_DRIVER}: use SparkSession.builder.master(…), or sluicegate-spark with spark-submit. (The format "
            "sluicegate and the functions of columns are for Connect too.)"
        ) from error


def _begun(builder: Any) -> SparkSession:
    session: SparkSession = (
        builder.config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
        .config("spark.sql.streaming.forceDeleteTempCheckpointLocation", "true")
        .getOrCreate()
    )
    return session
