"""Provides a Spark session on two cores of this machine, with Spark's own Kafka source and the source `sluicegate`."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from pyspark.sql import SparkSession

from sluicegate.pipeline.runs.results import java_classes
from sluicegate.pipeline.source.datasource import TopicSource
from tests.pipeline.java_options import SHORT_LIVED
from tests.pipeline.spark_home import HOME, JARS

LONG_LIVED = ""
"""Java options for measurements. They are the defaults, because a slower Spark would make comparisons look too good."""


def spark_session(folder: Path, java_options: str = SHORT_LIVED) -> SparkSession:
    """Start a session that keeps its files in `folder`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(HOME)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(str(jar) for jar in sorted(JARS.glob("*.jar"))))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.extraJavaOptions", java_options)
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(TopicSource)
    return session


class SharedSession:
    """The session that all tests and commands of one process share. It starts when it is first used."""

    _started: ClassVar[tuple[SparkSession, Path] | None] = None

    @classmethod
    def get(cls) -> SparkSession:
        """Return the session and make it active in this thread: after an interrupted call py4j gives the thread another
        thread of Java.
        """
        if cls._started is None:
            folder = Path(tempfile.mkdtemp(prefix="sluicegate-spark-"))
            cls._started = spark_session(folder), folder
        session = cls._started[0]
        java_classes(session).SparkSession.setActiveSession(session._jsparkSession)
        return session

    @classmethod
    def stop(cls) -> None:
        """Stop the session, if there is one."""
        if cls._started is not None:
            session, folder = cls._started
            cls._started = None
            session.stop()
            shutil.rmtree(folder, ignore_errors=True)
