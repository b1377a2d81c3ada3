"""A Spark session on two cores of this machine, with both Kafka sources: Spark's own, and ours."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.pipeline.source.datasource import TopicSource
from tests.pipeline.java_options import SHORT_LIVED
from tests.pipeline.spark_home import HOME, JARS

LONG_LIVED = ""
"""What is measured runs as Java does by itself: a slower Spark would flatter what is measured against it."""


def spark_session(folder: Path, java_options: str = SHORT_LIVED) -> SparkSession:
    """`folder` is for what Spark keeps."""
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
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(TopicSource)
    return session
