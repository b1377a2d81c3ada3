"""Answers SQL by a Spark session that has Delta Lake and Iceberg, and no code of ours: `python -m
tests.pipeline.lake_reader QUERY…` prints a line of JSON. `delta.`/path/`` and `iceberg.`/path/`` stand for tables.
"""

import json
import re
import sys

from pyspark.sql import SparkSession

_TABLE = re.compile(r"(delta|iceberg|parquet)\.`([^`]+)`")


def main() -> None:
    """The rows of each query."""
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .getOrCreate()
    )
    found = []
    for query in sys.argv[1:]:
        said = query
        for number, (form, path) in enumerate(_TABLE.findall(query)):
            session.read.format(form).load(path).createOrReplaceTempView(f"t{number}")
            said = said.replace(f"{form}.`{path}`", f"t{number}")
        found.append([json.loads(row) for row in session.sql(said).toJSON().collect()])
    session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
