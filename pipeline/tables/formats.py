"""What tables are kept in, what Spark needs for it, and where they lie."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from sluicegate.pipeline.errors import PipelineError

_CATALOG = "catalog:"
_ICEBERG = "org.apache.iceberg.spark.SparkCatalog"


class TableFormat(StrEnum):
    """By the names that --format takes."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


CLASSES = {TableFormat.DELTA: "io.delta.sql.DeltaSparkSessionExtension", TableFormat.ICEBERG: _ICEBERG}
"""One that is there where the format is."""
# Made for one minor of Spark each; `make test` and `make sparks` keep tables in them.
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
    """Tables cannot be kept there or so; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Where tables are kept (`where`: a folder, or for Iceberg `catalog:NAME.NAMESPACE`), and in which format."""

    where: str
    format: TableFormat

    @property
    def catalog(self) -> str | None:
        """The namespace of a catalog of the user's, with the catalog's name before it; None for a folder."""
        return self.where.removeprefix(_CATALOG) if self.where.startswith(_CATALOG) else None

    def settings(self) -> Mapping[str, str]:
        """What a session begins with. Iceberg's can be said later."""
        if self.format is not TableFormat.DELTA:
            return {}
        return {
            "spark.sql.extensions": CLASSES[self.format],
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }

    def within(self) -> tuple[str, Mapping[str, str]]:
        """What stands before an Iceberg table's name, and the settings of the catalog that this makes of a folder."""
        if self.catalog is not None:
            return self.catalog, {}
        # Spark keeps a catalog that it has made once, so each folder has one of its own.
        name = f"sluicegate_{sha256(self.where.encode()).hexdigest()[:12]}"
        key = f"spark.sql.catalog.{name}"
        return name, {key: _ICEBERG, f"{key}.type": "hadoop", f"{key}.warehouse": self.where}


def minor_of(spark: str) -> str:
    """4.0 of 4.0.0."""
    return ".".join(spark.split(".")[:2])


def package_of(form: TableFormat, spark: str) -> str | None:
    """What of Maven has the format, for that release of Spark (4.0.0); None where none was known."""
    return _PACKAGES.get(minor_of(spark), {}).get(form)


def kept_in(where: str | None, form: str | None) -> Kept | None:
    """What --tables and --format say; None where tables are not kept. Raises BadTables."""
    found = TableFormat.PARQUET if form is None else format_named(form)
    if where is None:
        if form is not None:
            raise BadTables(f"--format {form} needs --tables: where tables are kept")
        return None
    return kept_at(where, found)


def format_named(name: str) -> TableFormat:
    """Raises BadTables."""
    try:
        return TableFormat(name)
    except ValueError:
        raise BadTables(f"there is no format {name!r}; there are {', '.join(TableFormat)}") from None


def kept_at(where: str, form: TableFormat) -> Kept:
    """Raises BadTables for a catalog that is none, or that the format has no use for."""
    found = Kept(where.rstrip("/"), form)
    if found.catalog is None:
        return found
    if form is not TableFormat.ICEBERG:
        raise BadTables(f"{where}: only Iceberg's tables are kept in a catalog; give a folder, or --format iceberg")
    parts = found.catalog.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise BadTables(f"{where}: expected catalog:NAME.NAMESPACE, of letters, digits and underscores")
    return found
