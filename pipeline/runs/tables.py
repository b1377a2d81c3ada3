"""Keeps tables that several runs write to: their formats, and the packages that Spark needs for them.

A run replaces the rows that it or an equal run wrote before, so no row occurs twice. Rows are replaced by the values in
one column: the topics of a run, or the batch of a stream. Delta Lake and Iceberg replace rows in one commit. For
Parquet, the folders of these values are deleted and written again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.results import BadFolder, Results, java_classes

_CATALOG = "catalog:"
_ICEBERG = "org.apache.iceberg.spark.SparkCatalog"


class TableFormat(StrEnum):
    """The values of --format."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


CLASSES = {TableFormat.DELTA: "io.delta.sql.DeltaSparkSessionExtension", TableFormat.ICEBERG: _ICEBERG}
"""Classes that are on the classpath if the format is available."""
# One package for each minor release of Spark. `make test` and `make sparks` test them.
_PACKAGES = {
    "4.0": {
        TableFormat.DELTA: "io.delta:delta-spark_2.13:4.0.0",
        TableFormat.ICEBERG: "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    },
    "4.1": {
        TableFormat.DELTA: "io.delta:delta-spark_4.1_2.13:4.4.0",
        TableFormat.ICEBERG: "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    },
    "4.2": {TableFormat.DELTA: "io.delta:delta-spark_4.2_2.13:4.4.0"},
}


class BadTables(PipelineError):
    """Raised if tables cannot be kept at this location or in this format. The message gives the reason and a fix."""


@dataclass(frozen=True, slots=True)
class TableLocation:
    """The location and the format of tables.

    `where` is a folder, or `catalog:NAME.NAMESPACE` for Iceberg.
    """

    where: str
    format: TableFormat

    @property
    def catalog(self) -> str | None:
        """Return NAME.NAMESPACE in the user's catalog; None for a folder."""
        return self.where.removeprefix(_CATALOG) if self.where.startswith(_CATALOG) else None

    def settings(self) -> Mapping[str, str]:
        """Return settings that must be set before the session starts. Iceberg's settings can also be set later."""
        if self.format is not TableFormat.DELTA:
            return {}
        return {
            "spark.sql.extensions": CLASSES[self.format],
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }

    def within(self) -> tuple[str, Mapping[str, str]]:
        """Return the prefix of an Iceberg table's name, and the settings of the catalog that represents a folder."""
        if self.catalog is not None:
            return self.catalog, {}
        # Spark caches catalogs by name, so each folder gets a catalog with its own name.
        name = f"sluicegate_{sha256(self.where.encode()).hexdigest()[:12]}"
        key = f"spark.sql.catalog.{name}"
        return name, {key: _ICEBERG, f"{key}.type": "hadoop", f"{key}.warehouse": self.where}


def minor_of(spark: str) -> str:
    """Return a version's minor release, such as 4.0 for 4.0.0."""
    return ".".join(spark.split(".")[:2])


def package_of(form: TableFormat, spark: str) -> str | None:
    """Return the Maven package of a format for a Spark version such as 4.0.0; None if no package is known."""
    return _PACKAGES.get(minor_of(spark), {}).get(form)


def table_location_from(where: str | None, form: str | None) -> TableLocation | None:
    """Return the location that --tables and --format name; None if tables are not kept. Raises BadTables."""
    found = TableFormat.PARQUET if form is None else format_named(form)
    if where is None:
        if form is not None:
            raise BadTables(f"--format {form} needs --tables")
        return None
    return table_location(where, found)


def format_named(name: str) -> TableFormat:
    """Return the format with that name. Raises BadTables."""
    try:
        return TableFormat(name)
    except ValueError:
        raise BadTables(f"unknown format {name!r}; expected one of {', '.join(TableFormat)}") from None


def table_location(where: str, form: TableFormat) -> TableLocation:
    """Return a checked location. Raises BadTables if the catalog is invalid or the format cannot use it."""
    found = TableLocation(where.rstrip("/"), form)
    if found.catalog is None:
        return found
    if form is not TableFormat.ICEBERG:
        raise BadTables(f"{where}: only Iceberg supports a catalog; use a folder, or --format iceberg")
    parts = found.catalog.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise BadTables(f"{where}: expected catalog:NAME.NAMESPACE, of letters, digits and underscores")
    return found


PARTITIONED_BY = ("topic", "day")


class Tables(Protocol):
    """The operations that every format supports."""

    def replace(self, name: str, rows: DataFrame, by: str, values: Sequence[str]) -> None:
        """Replace the rows that contain one of `values` in the column `by`. Each new row also contains one of them."""

    def read(self, name: str, schema: str) -> DataFrame:
        """Return the table, which is empty if it does not exist. `schema` is Spark DDL."""


def tables_in(spark: SparkSession, kept: TableLocation) -> Tables:
    """Return the tables at a location. Raises BadTables if Spark lacks the format, or if the location is invalid."""
    if kept.format in CLASSES:
        _check_class(spark, kept.format)
    match kept.format:
        case TableFormat.DELTA:
            return _Delta(spark, kept.where)
        case TableFormat.ICEBERG:
            return _Iceberg(spark, kept)
    return _Parquet(spark, kept.where)


class _Parquet:
    """Tables in Parquet, in folders `NAME/topic=…/day=…` or `NAME/batch=…/topic=…/day=…`."""

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
        # In dynamic mode, two runs with different topics use different temporary folders.
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
    """Tables in Delta Lake, each in a folder `NAME`."""

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
    """Tables in Iceberg, either in a catalog or each in a folder `NAME`."""

    def __init__(self, spark: SparkSession, kept: TableLocation) -> None:
        self._spark = spark
        self._within, settings = kept.within()
        for key, value in settings.items():
            spark.conf.set(key, value)
        if kept.catalog is not None and spark.conf.get(f"spark.sql.catalog.{self._within.split('.')[0]}", None) is None:
            raise BadTables(
                f"{kept.where}: Spark has no such catalog; configure its implementation "
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
    """Raise BadTables if the format raises an error."""
    try:
        yield
    except PySparkException as error:
        raise BadTables(f"the table {name} rejects the rows: {' '.join(str(error).split())}") from error
    except Py4JJavaError as error:
        message = " ".join(str(error.java_exception.getMessage()).split())
        raise BadTables(f"the table {name} rejects the rows: {message}") from error


def _check_class(spark: SparkSession, form: TableFormat) -> None:
    """Check that Spark supports the format, because a later error would not name the jar."""
    try:
        java_classes(spark).org.apache.spark.util.Utils.classForName(CLASSES[form], True, False)
    except Py4JJavaError as error:
        to_do = f"{_what_to_do(form, spark.version)} (docs/pipeline/kept-tables.md)"
        raise BadTables(f"Spark has no {form} here{to_do}") from error


def _what_to_do(form: TableFormat, spark: str) -> str:
    package, minor = package_of(form, spark), minor_of(spark)
    if package is None:
        return (
            f", and this release does not know a package for Spark {minor}: if one exists, add it to "
            f"spark.jars.packages; otherwise use another format"
        )
    return f": add {package} (for Spark {minor}) to spark.jars.packages, or its jars to spark.jars"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


_DAY_MS = 86_400_000


def day_of(milliseconds: Column) -> Column:
    """Return the day (UTC) of a time in ms, independent of the session's time zone."""
    return f.date_from_unix_date(f.floor(milliseconds / _DAY_MS).cast("int"))


def batch_name(stream: str, number: int) -> str:
    """Return the name of a stream's batch, which has at most 16 characters.

    Iceberg stores only the first 16 characters of the bounds of each file, and uses them to find files.
    """
    return f"{stream.replace('-', '')[:6]}-{number:08}"
