"""Manages the folder of a job's results, on any file system that Spark can write to.

Readers see a file as a whole or not at all. `summary.json` is written last, so if it exists, all results exist. One run
at a time owns the folder (`sluicegate.pipeline.runs.folder_lock`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.runs.errors import PipelineError

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView

SUMMARY = "summary.json"
REPORT = "report.html"
_NO_CONNECTOR = ("No FileSystem for scheme", "ClassNotFoundException: Class org.apache.hadoop.fs.")
_NO_BUCKET = "NoSuchBucket"
_PAGE = "docs/how-to/spark-platforms.md"
_REJECTED = ("AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "NoAuthWithAWSException")
_CONNECTORS = {"s3a": "hadoop-aws", "abfs": "hadoop-azure", "abfss": "hadoop-azure", "gs": "gcs-connector"}


def java_classes(spark: SparkSession) -> "JVMView":
    """Return the classes of Spark's Java process, by their packages."""
    java = spark.sparkContext._jvm
    assert java is not None
    return java


class BadFolder(PipelineError):
    """Raised if the path is not a folder and cannot be created. The message contains the path and the reason."""


class Results:
    """The folder `out`. A run replaces the results of the previous run."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        """Open the folder, which need not exist.

        Raises BadFolder if the path is a file, or if Spark does not support its file system.
        """
        self._spark = spark
        self._out = out.rstrip("/")
        self._path_of = java_classes(spark).org.apache.hadoop.fs.Path
        try:
            folder = self._path_of(self._out)
            self._files = folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
            is_file = self._files.exists(folder) and self._files.getFileStatus(folder).isFile()
        except Py4JJavaError as error:
            raise BadFolder(f"{out} cannot be used: {_why(out, error)}") from error
        if is_file:
            raise BadFolder(f"{out} is a file; --out must be a folder")

    def make(self) -> None:
        """Create the folder, to check that it is writable before the work begins. Raises BadFolder."""
        try:
            self._files.mkdirs(self._path_of(self._out))
        except Py4JJavaError as error:
            raise BadFolder(f"{self._out} cannot be created: {_why(self._out, error)}") from error

    def path(self, name: str) -> str:
        """Return the path of a file or folder in this folder."""
        return f"{self._out}/{name}"

    def uri(self, name: str) -> str:
        """Return the absolute path with its file system, for processes with a different working directory."""
        return str(self._files.makeQualified(self._path_of(self.path(name))).toString())

    def names_in(self, name: str) -> list[str]:
        """Return the names of the files in a subfolder; an empty list if there is no such folder."""
        if not self.has(name):
            return []
        return [status.getPath().getName() for status in self._files.listStatus(self._path_of(self.path(name)))]

    def times_in(self, name: str) -> dict[str, int]:
        """Return the time at which each file in a subfolder was written (ms since 1970, by the file system's clock)."""
        statuses = self._files.listStatus(self._path_of(self.path(name)))
        return {str(status.getPath().getName()): int(status.getModificationTime()) for status in statuses}

    def remove(self, name: str) -> None:
        """Delete a file, or a folder with its contents, if it exists."""
        self._files.delete(self._path_of(self.path(name)), True)

    def has(self, name: str) -> bool:
        """Return whether a file or folder exists."""
        return bool(self._files.exists(self._path_of(self.path(name))))

    def write_table(self, name: str, rows: DataFrame) -> DataFrame:
        """Write rows as Parquet, replacing the table. Return the table as it was written."""
        rows.write.mode("overwrite").parquet(self.path(name))
        return self._spark.read.schema(rows.schema).parquet(self.path(name))

    def read_table(self, name: str) -> DataFrame:
        """Read a table that `write_table` wrote."""
        return self._spark.read.parquet(self.path(name))

    def write_text(self, name: str, text: str) -> None:
        """Write a file atomically, replacing the old one."""
        self.stage_text(name, text)
        self.publish(name)

    def stage_text(self, name: str, text: str) -> None:
        """Write the new contents next to the file. Readers see them after `publish`."""
        self.create_text(f".{name}.part", text)

    def publish(self, name: str) -> None:
        """Replace the file with its staged contents."""
        target = self._path_of(self.path(name))
        self._files.delete(target, False)
        self._files.rename(self._path_of(self.path(f".{name}.part")), target)

    def create_text(self, name: str, text: str) -> None:
        """Write a file in place, so that the file system dates it now. Readers may see an incomplete file."""
        with _closed(self._files.create(self._path_of(self.path(name)), True)) as stream:
            stream.write(bytearray(text.encode()))

    def read_text(self, name: str) -> str:
        """Return the text in a file."""
        with _closed(self._files.open(self._path_of(self.path(name)))) as stream:
            return bytes(stream.readAllBytes()).decode()

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write summary.json, which is the job's last step."""
        self.write_text(SUMMARY, json.dumps(summary, indent=2) + "\n")

    def read_summary(self) -> dict[str, Any]:
        """Return the summary that `write_summary` wrote."""
        found: dict[str, Any] = json.loads(self.read_text(SUMMARY))
        return found

    def forget_summary(self) -> None:
        """Delete summary.json before other results are replaced."""
        self._files.delete(self._path_of(self.path(SUMMARY)), False)


@contextmanager
def _closed(stream: Any) -> Iterator[Any]:
    """Close a Java stream. After an error, ignore an error from closing, because it follows from the first error."""
    try:
        yield stream
    except BaseException:
        with suppress(Py4JError, OSError):
            stream.close()
        raise
    stream.close()


def _message_of(error: Py4JJavaError) -> str:
    return " ".join(str(error.java_exception.getMessage()).split())


def _why(out: str, error: Py4JJavaError) -> str:
    """Return the file system's message and a hint."""
    message = _message_of(error)
    return message + _way_on(out, message)


def _way_on(out: str, message: str) -> str:
    """Return a hint if the store denies access, or if Spark lacks the connector.

    Spark only contains the connectors for files and hdfs.
    """
    scheme = out.partition(":")[0]
    if scheme == "s3a" and _NO_BUCKET in message:
        return ". Create the bucket first, or name an existing one"
    if scheme == "s3a" and any(text in message for text in _REJECTED):
        return f". Set keys with write access as fs.s3a.access.key and fs.s3a.secret.key ({_PAGE})"
    if not any(text in message for text in _NO_CONNECTOR):
        return ""
    if scheme == "s3":
        return ". Use s3a:// instead of s3://"
    jars = f": add {_CONNECTORS[scheme]} and its dependencies to spark.jars" if scheme in _CONNECTORS else ""
    return f". Spark has no connector for {scheme}:// here{jars} ({_PAGE}), or give a folder"
