"""Formats of kept tables, the packages that Spark needs for them, and their location."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from sluicegate.pipeline.errors import PipelineError

_CATALOG = "catalog:"
_ICEBERG = "org.apache.iceberg.spark.SparkCatalog"


class TableFormat(StrEnum):
    """Values of --format."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


CLASSES = {TableFormat.DELTA: "io.delta.sql.DeltaSparkSessionExtension", TableFormat.ICEBERG: _ICEBERG}
"""A class that is on the classpath if the format is available."""
# One for each minor release of Spark; `make test` and `make sparks` test them.
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
    """Tables cannot be kept at this location or in this format; the text gives reason and fix."""


@dataclass(frozen=True, slots=True)
class TableLocation:
    """Where tables are kept (`where`: a folder, or `catalog:NAME.NAMESPACE` for Iceberg), and their format."""

    where: str
    format: TableFormat

    @property
    def catalog(self) -> str | None:
        """Return NAME.NAMESPACE of the user's catalog; None for a folder."""
        return self.where.removeprefix(_CATALOG) if self.where.startswith(_CATALOG) else None

    def settings(self) -> Mapping[str, str]:
        """Return settings that the session must start with. Iceberg's can be set later."""
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
        # Spark caches catalogs by name, so each folder gets its own name.
        name = f"sluicegate_{sha256(self.where.encode()).hexdigest()[:12]}"
        key = f"spark.sql.catalog.{name}"
        return name, {key: _ICEBERG, f"{key}.type": "hadoop", f"{key}.warehouse": self.where}


def minor_of(spark: str) -> str:
    """Return 4.0 for 4.0.0."""
    return ".".join(spark.split(".")[:2])


def package_of(form: TableFormat, spark: str) -> str | None:
    """Return the Maven package of a format for a release of Spark (4.0.0); None if none is known."""
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
    """Return the format of that name. Raises BadTables."""
    try:
        return TableFormat(name)
    except ValueError:
        raise BadTables(f"unknown format {name!r}; expected one of {', '.join(TableFormat)}") from None


def table_location(where: str, form: TableFormat) -> TableLocation:
    """Return a checked location. Raises BadTables for an invalid catalog, or one that the format cannot use."""
    found = TableLocation(where.rstrip("/"), form)
    if found.catalog is None:
        return found
    if form is not TableFormat.ICEBERG:
        raise BadTables(f"{where}: only Iceberg supports a catalog; use a folder, or --format iceberg")
    parts = found.catalog.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise BadTables(f"{where}: expected catalog:NAME.NAMESPACE, of letters, digits and underscores")
    return found
