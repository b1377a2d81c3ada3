"""Answers SQL by a Spark session that has Delta Lake and Iceberg, and no code of ours.

The first argument has in JSON what the session begins with. A line of JSON on standard input has queries; a line on
standard output, the rows of each. `delta.`/path/`` and the like are replaced by tables in folders.
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
    """Until standard input ends."""
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
