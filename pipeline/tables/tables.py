"""Tables that runs add to, each in place of what it, or one like it, has left there before: nothing is there twice.

Rows are replaced by the values of one column: the topics that a run was about, or the batch that a stream was at. Delta
Lake and Iceberg do so in one commit. Of Parquet, folders of these values are removed and written.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.results import BadFolder, Results
from sluicegate.pipeline.tables.formats import CLASSES, BadTables, Kept, TableFormat, minor_of, package_of

PARTITIONED_BY = ("topic", "day")


class Tables(Protocol):
    """What all formats can do."""

    def replace(self, name: str, rows: DataFrame, by: str, values: Sequence[str]) -> None:
        """`rows`, all of which have one of the values in the column `by`, in place of those that have one now."""

    def read(self, name: str, schema: str) -> DataFrame:
        """A table as it is; without rows where there is none. `schema` is Spark's DDL."""


def tables_in(spark: SparkSession, kept: Kept) -> Tables:
    """Raises BadTables where Spark lacks what the format needs, or the place cannot be one."""
    if kept.format in CLASSES:
        _check_class(spark, kept.format)
    match kept.format:
        case TableFormat.DELTA:
            return _Delta(spark, kept.where)
        case TableFormat.ICEBERG:
            return _Iceberg(spark, kept)
    return _Parquet(spark, kept.where)


class _Parquet:
    """Folders `NAME/topic=…/day=…`, or `NAME/batch=…/topic=…/day=…`."""

    def __init__(self, spark: SparkSession, where: str) -> None:
        self._spark = spark
        try:
            self._folder = Results(spark, where)
            self._folder.make()
        except BadFolder as error:
            raise BadTables(str(error)) from error

    def replace(self, name: str, rows: DataFrame, by: str, values: Sequence[str]) -> None:
        """As `Tables` says."""
        for value in values:
            self._folder.remove(f"{name}/{by}={value}")
        # Dynamically: two runs about different topics do not meet in one folder for what is being written.
        (
            rows.write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(*dict.fromkeys((by, *PARTITIONED_BY)))
            .parquet(self._folder.path(name))
        )

    def read(self, name: str, schema: str) -> DataFrame:
        """As `Tables` says."""
        if not self._folder.has(name):
            return self._spark.createDataFrame([], schema)
        return self._spark.read.schema(schema).parquet(self._folder.path(name))


class _Delta:
    """Folders `NAME`, each a table."""

    def __init__(self, spark: SparkSession, where: str) -> None:
        self._spark = spark
        self._where = where

    def replace(self, name: str, rows: DataFrame, by: str, values: Sequence[str]) -> None:
        """As `Tables` says."""
        with _told(name):
            (
                rows.write.format("delta")
                .mode("overwrite")
                .option("replaceWhere", f"{by} IN ({', '.join(map(_quoted, values))})")
                .partitionBy(*PARTITIONED_BY)
                .save(f"{self._where}/{name}")
            )

    def read(self, name: str, schema: str) -> DataFrame:
        """As `Tables` says."""
        if not Results(self._spark, self._where).has(f"{name}/_delta_log"):
            return self._spark.createDataFrame([], schema)
        return self._spark.read.format("delta").load(f"{self._where}/{name}")


class _Iceberg:
    """Tables of a catalog, or folders `NAME`, each a table."""

    def __init__(self, spark: SparkSession, kept: Kept) -> None:
        self._spark = spark
        self._within, settings = kept.within()
        for key, value in settings.items():
            spark.conf.set(key, value)
        if kept.catalog is not None and spark.conf.get(f"spark.sql.catalog.{self._within.split('.')[0]}", None) is None:
            raise BadTables(
                f"{kept.where}: Spark knows no such catalog; say of what kind it is in Spark's configuration "
                f"(spark.sql.catalog.{self._within.split('.')[0]}), or give a folder"
            )

    def replace(self, name: str, rows: DataFrame, by: str, values: Sequence[str]) -> None:
        """As `Tables` says."""
        table = f"{self._within}.{name}"
        with _told(name):
            if not self._spark.catalog.tableExists(table):
                columns = (f.col(column) for column in PARTITIONED_BY)
                rows.limit(0).writeTo(table).using("iceberg").partitionedBy(*columns).create()
            rows.writeTo(table).overwrite(f.col(by).isin(*values))

    def read(self, name: str, schema: str) -> DataFrame:
        """As `Tables` says."""
        table = f"{self._within}.{name}"
        if not self._spark.catalog.tableExists(table):
            return self._spark.createDataFrame([], schema)
        return self._spark.table(table)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What a format says of a table that it does not take."""
    try:
        yield
    except PySparkException as error:
        raise BadTables(f"the table {name} does not take the rows: {' '.join(str(error).split())}") from error
    except Py4JJavaError as error:
        told = " ".join(str(error.java_exception.getMessage()).split())
        raise BadTables(f"the table {name} does not take the rows: {told}") from error


def _check_class(spark: SparkSession, form: TableFormat) -> None:
    """That the format is there: what would come of it later names no jar."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    try:
        jvm.org.apache.spark.util.Utils.classForName(CLASSES[form], True, False)
    except Py4JJavaError as error:
        raise BadTables(f"Spark has no {form} here{_what_to_do(form, spark.version)} (docs/pipeline.md)") from error


def _what_to_do(form: TableFormat, spark: str) -> str:
    package, minor = package_of(form, spark), minor_of(spark)
    if package is None:
        return (
            f", and none was known for Spark {minor} when this release was made: name what has been made for it since "
            "in spark.jars.packages, or keep tables in another format"
        )
    return f": name {package} (for Spark {minor}) in spark.jars.packages, or its jars in spark.jars"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


_DAY_MS = 86_400_000


def day_of(milliseconds: Column) -> Column:
    """The day (UTC) of a moment, whatever the session's time zone is."""
    return f.date_from_unix_date(f.floor(milliseconds / _DAY_MS).cast("int"))


def batch_name(stream: str, number: int) -> str:
    """Of a stream's batch: no longer than the 16 characters of a text that Iceberg keeps of each file, by which it
    knows what a file holds.
    """
    return f"{stream.replace('-', '')[:6]}-{number:08}"
