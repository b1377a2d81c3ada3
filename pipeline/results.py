"""Where a job's results go: a folder on any file system that Spark can write to.

A file appears whole or not at all; `summary.json` comes last, so that where it is, the rest is too.
"""

import json
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.errors import PipelineError

SUMMARY = "summary.json"
REPORT = "report.html"
_NO_CONNECTOR = ("No FileSystem for scheme", "ClassNotFoundException: Class org.apache.hadoop.fs.")
_NO_BUCKET = "NoSuchBucket"
_REJECTED = ("AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "NoAuthWithAWSException")
_CONNECTORS = {"s3a": "hadoop-aws", "abfs": "hadoop-azure", "abfss": "hadoop-azure", "gs": "gcs-connector"}


class BadFolder(PipelineError):
    """What was given is no folder, and cannot be made one; the text says which and why."""


class Results:
    """The folder `out`; a run replaces what an earlier one left."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        """It need not be there. Raises BadFolder where there is something else, or Spark knows no such file system."""
        self._spark = spark
        self._out = out.rstrip("/")
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._path_of = jvm.org.apache.hadoop.fs.Path
        try:
            folder = self._path_of(self._out)
            self._files = folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
            is_file = self._files.exists(folder) and self._files.getFileStatus(folder).isFile()
        except Py4JJavaError as error:
            raise BadFolder(f"{out} cannot be used: {_why(out, error)}") from error
        if is_file:
            raise BadFolder(f"{out} is a file, and results need a folder")

    def make(self) -> None:
        """The folder itself, so that it is known to be writable before the work begins. Raises BadFolder."""
        try:
            self._files.mkdirs(self._path_of(self._out))
        except Py4JJavaError as error:
            raise BadFolder(f"{self._out} cannot be made: {_why(self._out, error)}") from error

    def path(self, name: str) -> str:
        """Of a file or folder within."""
        return f"{self._out}/{name}"

    def uri(self, name: str) -> str:
        """The same with its file system, from the root: for who does not know where Spark was started."""
        return str(self._files.makeQualified(self._path_of(self.path(name))).toString())

    def names_in(self, name: str) -> list[str]:
        """Of the files in a folder within; none where there is no such folder."""
        if not self.has(name):
            return []
        return [status.getPath().getName() for status in self._files.listStatus(self._path_of(self.path(name)))]

    def times_in(self, name: str) -> dict[str, int]:
        """When each file in a folder within was written (ms since 1970, by the file system's clock)."""
        statuses = self._files.listStatus(self._path_of(self.path(name)))
        return {str(status.getPath().getName()): int(status.getModificationTime()) for status in statuses}

    def remove(self, name: str) -> None:
        """A file or folder within, with all that it holds, if it is there."""
        self._files.delete(self._path_of(self.path(name)), True)

    def has(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._files.exists(self._path_of(self.path(name))))

    def write_table(self, name: str, rows: DataFrame) -> DataFrame:
        """As Parquet, in place of what was there; returned as read from there."""
        rows.write.mode("overwrite").parquet(self.path(name))
        return self._spark.read.schema(rows.schema).parquet(self.path(name))

    def read_table(self, name: str) -> DataFrame:
        """What `write_table` wrote."""
        return self._spark.read.parquet(self.path(name))

    def write_text(self, name: str, text: str) -> None:
        """A file, in place of what was there."""
        self.stage_text(name, text)
        self.publish(name)

    def stage_text(self, name: str, text: str) -> None:
        """What a file is to hold, beside it: it takes its room, and is not seen before `publish`."""
        self.create_text(f".{name}.part", text)

    def publish(self, name: str) -> None:
        """Put what was staged in place of the file."""
        target = self._path_of(self.path(name))
        self._files.delete(target, False)
        self._files.rename(self._path_of(self.path(f".{name}.part")), target)

    def create_text(self, name: str, text: str) -> None:
        """A file that may be seen before it is whole, so that the file system dates it when it is written."""
        stream = self._files.create(self._path_of(self.path(name)), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def read_text(self, name: str) -> str:
        """A file's text."""
        stream = self._files.open(self._path_of(self.path(name)))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write_summary(self, summary: dict[str, Any]) -> None:
        """The last thing that a job writes."""
        self.write_text(SUMMARY, json.dumps(summary, indent=2) + "\n")

    def read_summary(self) -> dict[str, Any]:
        """What `write_summary` wrote."""
        found: dict[str, Any] = json.loads(self.read_text(SUMMARY))
        return found

    def forget_summary(self) -> None:
        """Before anything else is replaced."""
        self._files.delete(self._path_of(self.path(SUMMARY)), False)


def _told(error: Py4JJavaError) -> str:
    return " ".join(str(error.java_exception.getMessage()).split())


def _why(out: str, error: Py4JJavaError) -> str:
    """What a file system said, and what to do."""
    told = _told(error)
    return told + _way_on(out, told)


def _way_on(out: str, told: str) -> str:
    """What to do where the store says no, or Spark lacks the connector: it brings none but those for files and hdfs."""
    scheme = out.partition(":")[0]
    if scheme == "s3a" and _NO_BUCKET in told:
        return ". Make that bucket first, or name one that is there"
    if scheme == "s3a" and any(text in told for text in _REJECTED):
        return ". Give keys that may write there, as fs.s3a.access.key and fs.s3a.secret.key (docs/pipeline.md)"
    if not any(text in told for text in _NO_CONNECTOR):
        return ""
    if scheme == "s3":
        return ". Spark knows such places as s3a://"
    jars = f": put {_CONNECTORS[scheme]} and what it needs into spark.jars" if scheme in _CONNECTORS else ""
    return f". Spark has no connector for {scheme}:// here{jars} (docs/pipeline.md), or give a folder"
