"""Creates a job's Spark session: a local one, or a session on the cluster to which the job was submitted."""

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from py4j.clientserver import ClientServerConnection
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkAttributeError, PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.source.datasource import TopicSource
from sluicegate.pipeline.source.tasks import WITHOUT_PANDAS

_HERE = "local[*]"
_MASTER = re.compile(r"local(-cluster)?(\[[^\]]+\])?|yarn|(spark|k8s)://\S+")
_LOGGING = Path(__file__).with_name("log4j2.properties")
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable with the port of the JVM that spark-submit started. Only this JVM knows the settings of
spark-submit, such as `spark.master`.
"""
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CONNECT = "SPARK_REMOTE"
"""Environment variable that names a Spark Connect server."""
_MOST_WORDS = 1 << 20
_NO_DRIVER = (
    "a job needs Spark's driver in its own process, because it writes results through that driver's file systems, and "
    "a session of Spark Connect has none"
)


class NoSession(PipelineError):
    """Raised if Spark does not start, or if its session cannot run a job. The message gives the reason."""


def session(
    job: str, master: str | None, settings: Mapping[str, str] = MappingProxyType({}), spark_log: Path | None = None
) -> SparkSession:
    """Return a session for the job.

    `master` is a Spark master URL; None means spark-submit's master, or all local cores. `settings` are additional
    settings of the session. Spark's log lines are appended to the file `spark_log`; None drops them. A JVM that
    spark-submit started writes its log as configured there. Raises NoSession.
    """
    if master is not None and _MASTER.fullmatch(master) is None:
        raise NoSession(f"--master {master} is invalid: expected local, local[N], local[*], spark://…, yarn or k8s://…")
    if _CONNECT in os.environ:
        raise NoSession(f"{_CONNECT} is set, and {_NO_DRIVER}: unset it and use --master or spark-submit")
    _keep_connections_after_interruptions()
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
            # Each shuffle partition is a task (and a Python process if it has state), so create only as many as run at
            # once.
            builder = builder.config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
    with _log_file(spark_log) as log:
        found = _begun_with(builder, log, chosen, begins_java=not submitted)
    found.sparkContext.setLogLevel("ERROR" if spark_log is None else "INFO")
    found.dataSource.register(TopicSource)
    return found


def _keep_connections_after_interruptions() -> None:
    """Make py4j close only the interrupted call's connection after a KeyboardInterrupt.

    py4j asks Java to close the connection with the two ports that it names. Java then closes every connection that uses
    either port, and all connections share Java's port (`GatewayServer.shutdownSocket` of py4j 0.10.9.9). Java does this
    when the interrupted call ends. A call that cleans up after the interruption may therefore fail at any time with
    "Answer from Java side is empty".
    """
    ClientServerConnection.shutdown_socket = _shut_down_own_socket


def _shut_down_own_socket(connection: Any, own_port: int, _java_port: int) -> None:
    if connection.socket.getsockname()[1] == own_port:
        connection.close()


def _log_file(spark_log: Path | None) -> IO[bytes]:
    if spark_log is None:
        return tempfile.TemporaryFile()
    try:
        return spark_log.open("ab")
    except OSError as error:
        raise NoSession(f"--spark-log {spark_log} cannot be written: {error.strerror}") from error


def _begun_with(builder: Any, log: IO[bytes], chosen: str | None, *, begins_java: bool) -> SparkSession:
    """Start the session. The output of Java and of its Python workers goes to `log` instead of the terminal."""
    try:
        if begins_java and SparkSession.getActiveSession() is None:
            conf = SparkConf().setAll(list(builder._options.items()))
            SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stderr": log}))
        return _begun(builder)
    except (Py4JJavaError, PySparkException) as error:
        message = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
        where = "the master that spark-submit was given" if chosen is None else f"--master {chosen}"
        raise NoSession(f"Spark does not start with {where}: {message}{_last_words(log)}") from error


def _last_words(log: IO[bytes]) -> str:
    """Return the last line that Java wrote before it failed to start."""
    if not log.readable():
        return f" ({log.name} has Spark's own lines)"
    log.seek(0)
    lines = [line.strip() for line in log.read(_MOST_WORDS).decode(errors="replace").splitlines() if line.strip()]
    return f" ({lines[-1]})" if lines else ""


def check_driver(spark: SparkSession) -> None:
    """Raise NoSession if the session is a Spark Connect session."""
    try:
        spark.sparkContext  # noqa: B018  # raises for Connect
    except PySparkAttributeError as error:
        raise NoSession(
            f"{_NO_DRIVER}: use SparkSession.builder.master(…), or sluicegate-spark with spark-submit. (The format "
            "sluicegate and the column functions work with Connect.)"
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
