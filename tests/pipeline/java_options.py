"""Defines Java's options for short runs of Spark."""

from tests.pipeline.spark_home import HOME, JARS

ARCHIVE = JARS / "classes.jsa"  # see class_archive.py
# In short runs, the second compiler and parallel garbage collection cost more than they save. Spark generates classes
# for each query. With Java's default sizes, the first hundred MB of classes would cause full collections and repeated
# scans of compiled code.
WITHOUT_ARCHIVE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=512m -XX:ReservedCodeCacheSize=240m"
# Warnings are disabled, because tests read the output of commands, and an archive that does not match only makes Java
# slower.
_FROM_ARCHIVE = f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.exists() else ""
SHORT_LIVED = WITHOUT_ARCHIVE + _FROM_ARCHIVE
ENVIRONMENT = {
    "SPARK_HOME": str(HOME),
    "SPARK_LAUNCHER_OPTS": WITHOUT_ARCHIVE,
    "SPARK_SUBMIT_OPTS": f'{SHORT_LIVED} "-Dspark.executor.extraJavaOptions={SHORT_LIVED}"',
    "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
}
"""The environment for all of Spark's Java processes: the driver, its executors, a master and workers."""
