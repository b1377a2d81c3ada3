"""Writes the class archive for Spark: `python -m tests.pipeline.class_archive`.

A Spark session spends its first seconds loading classes, and the tests start about thirty sessions. With an archive of
loaded and verified classes (JEP 350), Spark starts faster. Without an archive, or with an archive from a different Java
version, it starts at the usual speed.
"""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

from tests.pipeline.java_options import ARCHIVE, WITHOUT_ARCHIVE
from tests.pipeline.session import spark_session


def make_class_archive() -> None:
    """Run a session that reads, shuffles and writes a little; Java writes the archive when the session ends."""
    ARCHIVE.unlink(missing_ok=True)
    with TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        made = Path(folder) / ARCHIVE.name
        options = f"{WITHOUT_ARCHIVE} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
        spark = spark_session(Path(folder) / "spark", options)
        _use(spark, f"{folder}/rows")
        java = spark.sparkContext._gateway.proc  # the process ends when its input ends
        spark.stop()
        java.stdin.close()
        java.wait(300)
        made.replace(ARCHIVE)


def _use(spark: SparkSession, place: str) -> None:
    """Do a little of everything that jobs do: rows through Python, a shuffle, a window, a join, and tables."""
    rows = spark.range(100).selectExpr("id", "id % 3 AS part", "map('a', id) AS entries", "array(id) AS ids")
    through = rows.mapInArrow(_as_they_are, rows.schema)
    through.write.partitionBy("part").parquet(place)
    found = spark.read.parquet(place)
    placed = found.withColumn("place", f.row_number().over(Window.partitionBy("part").orderBy("id")))
    placed.where("place < 5").collect()
    sums = found.groupBy("part").agg(f.sum("id").alias("sum"), f.max("entries.a"), f.collect_list("ids"))
    found.join(sums, "part").select(f.to_json(f.struct("*"))).orderBy("part").collect()
    sums.unionByName(sums).cache().count()


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    make_class_archive()
