"""Tables that several runs write to. A run replaces the rows that it or an equal run wrote before, so no row is there
twice.

Rows are replaced by the values of one column: the topics of a run, or the batch of a stream. Delta Lake and Iceberg
replace in one commit; for Parquet, the folders of these values are deleted and written.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.results import BadFolder, Results
from sluicegate.pipeline.tables.formats import CLASSES, BadTables, TableFormat, TableLocation, minor_of, package_of

PARTITIONED_BY = ("topic", "day")


class Tables(Protocol):
    """The operations of every format."""

    def replace(self, name: str, rows: DataFrame, by: str, values: Sequence[str]) -> None:
        """Replace the rows that have one of `values` in the column `by`; each new row has one of them."""

    def read(self, name: str, schema: str) -> DataFrame:
        """Return the table, empty if it does not exist. `schema` is Spark's DDL."""


def tables_in(spark: SparkSession, kept: TableLocation) -> Tables:
    """Return the tables at a location. Raises BadTables if Spark lacks the format or the location is invalid."""
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
        """See `Tables`."""
        for value in values:
            self._folder.remove(f"{name}/{by}={value}")
        # Dynamic: two runs with different topics then use different temporary folders.
        (
            rows.write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(*dict.fromkeys((by, *PARTITIONED_BY)))
            .parquet(self._folder.path(name))
        )

    def read(self, name: str, schema: str) -> DataFrame:
        """See `Tables`."""
        if not self._folder.has(name):
            return self._spark.createDataFrame([], schema)
        return self._spark.read.schema(schema).parquet(self._folder.path(name))


class _Delta:
    """Folders `NAME`, each a table."""

    def __init__(self, spark: SparkSession, where: str) -> None:
        self._spark = spark
        self._where = where

    def replace(self, name: str, rows: DataFrame, by: str, values: Sequence[str]) -> None:
        """See `Tables`."""
        with _table_errors(name):
            (
                rows.write.format("delta")
                .mode("overwrite")
                .option("replaceWhere", f"{by} IN ({', '.join(map(_quoted, values))})")
                .partitionBy(*PARTITIONED_BY)
                .save(f"{self._where}/{name}")
            )

    def read(self, name: str, schema: str) -> DataFrame:
        """See `Tables`."""
        if not Results(self._spark, self._where).has(f"{name}/_delta_log"):
            return self._spark.createDataFrame([], schema)
        return self._spark.read.format("delta").load(f"{self._where}/{name}")


class _Iceberg:
    """Tables of a catalog, or folders `NAME`, each a table."""

    def __init__(self, spark: SparkSession, kept: TableLocation) -> None:
        self._spark = spark
        self._within, settings = kept.within()
        for key, value in settings.items():
            spark.conf.set(key, value)
        if kept.catalog is not None and spark.conf.get(f"spark.sql.catalog.{self._within.split('.')[0]}", None) is None:
            raise BadTables(
                f"{kept.where}: Spark knows no such catalog; configure its implementation "
                f"(spark.sql.catalog.{self._within.split('.')[0]}), or use a folder"
            )

    def replace(self, name: str, rows: DataFrame, by: str, values: Sequence[str]) -> None:
        """See `Tables`."""
        table = f"{self._within}.{name}"
        with _table_errors(name):
            if not self._spark.catalog.tableExists(table):
                columns = (f.col(column) for column in PARTITIONED_BY)
                rows.limit(0).writeTo(table).using("iceberg").partitionedBy(*columns).create()
            rows.writeTo(table).overwrite(f.col(by).isin(*values))

    def read(self, name: str, schema: str) -> DataFrame:
        """See `Tables`."""
        table = f"{self._within}.{name}"
        if not self._spark.catalog.tableExists(table):
            return self._spark.createDataFrame([], schema)
        return self._spark.table(table)


@contextmanager
def _table_errors(name: str) -> Iterator[None]:
    """Raise BadTables for an error of the format."""
    try:
        yield
    except PySparkException as error:
        raise BadTables(f"the table {name} rejects the rows: {' '.join(str(error).split())}") from error
    except Py4JJavaError as error:
        message = " ".join(str(error.java_exception.getMessage()).split())
        raise BadTables(f"the table {name} rejects the rows: {message}") from error


def _check_class(spark: SparkSession, form: TableFormat) -> None:
    """Check that Spark has the format; a later error would not name the jar."""
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
            f", and this release knows no package for Spark {minor}: add one to spark.jars.packages if it "
            "exists, or use another format"
        )
    return f": add {package} (for Spark {minor}) to spark.jars.packages, or its jars to spark.jars"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


_DAY_MS = 86_400_000


def day_of(milliseconds: Column) -> Column:
    """Return the day (UTC) of a moment in ms, independent of the session's time zone."""
    return f.date_from_unix_date(f.floor(milliseconds / _DAY_MS).cast("int"))


def batch_name(stream: str, number: int) -> str:
    """Return the name of a stream's batch, at most 16 characters: Iceberg keeps so many of each file's bounds and finds
    files by them.
    """
    return f"{stream.replace('-', '')[:6]}-{number:08}"
