"""Makes the archive of classes that Spark starts from: `python -m tests.pipeline.class_archive`.

The first seconds of a Spark session go into loading classes, and tests start some thirty. Java keeps those that a first
one has loaded and checked (JEP 350); where the archive is missing, or another Java's, Spark starts as ever.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.pipeline.session import ARCHIVE, WITHOUT_ARCHIVE, spark_session


def make() -> None:
    """A session that reads, shuffles and writes a little; Java writes the archive at its end."""
    ARCHIVE.unlink(missing_ok=True)
    with TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        made = Path(folder) / ARCHIVE.name
        options = f"{WITHOUT_ARCHIVE} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
        spark = spark_session(Path(folder) / "spark", options)
        spark.range(100).selectExpr("id", "id % 3 AS part").write.parquet(f"{folder}/rows")
        spark.read.parquet(f"{folder}/rows").groupBy("part").count().collect()
        java = spark.sparkContext._gateway.proc  # it ends by itself once its input does
        spark.stop()
        java.stdin.close()
        java.wait(300)
        made.replace(ARCHIVE)


if __name__ == "__main__":
    make()
