"""Runs SQL queries in a Spark session with Delta Lake and Iceberg, without sluicegate.

The first argument contains the session's settings as JSON. Each line of standard input contains queries as JSON; each
line of standard output contains the rows of these queries. Names such as `delta.`/path/`` denote tables in folders.
"""

import json
import re
import sys
from typing import Any

from pyspark.sql import SparkSession

_TABLE = re.compile(r"(delta|iceberg|parquet)\.`([^`]+)`")


def _rows(session: SparkSession, query: str) -> list[dict[str, Any]]:
    for number, (form, path) in enumerate(_TABLE.findall(query)):
        session.read.format(form).load(path).createOrReplaceTempView(f"t{number}")
        query = query.replace(f"{form}.`{path}`", f"t{number}")
    return [json.loads(row) for row in session.sql(query).toJSON().collect()]


def main() -> None:
    """Run the queries until standard input ends."""
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config(map=json.loads(sys.argv[1]))
        .getOrCreate()
    )
    for line in sys.stdin:
        print(json.dumps([_rows(session, query) for query in json.loads(line)]), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
