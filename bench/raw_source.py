"""Compares the raw Spark source, and jobs on it, with Spark's own Kafka source: one topic, one session, in turns."""

import shutil
import statistics
import sys
import time
from collections.abc import Callable
from itertools import count

from pyspark.sql import DataFrame, Row, SparkSession

from sluicegate.pipeline.jobs.extract.built_in import BuiltInExtractor
from sluicegate.pipeline.jobs.extract.job import run
from sluicegate.pipeline.jobs.profile.job import profile, read_cells
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics

_HOUR_MS = 3_600_000
_NUMBERS = "min({0}) AS first, max({0}) AS last, count(*) AS records"
_FULL = "sum(length(value)) AS bytes, count(key) AS keys, max(offset) AS offset, max({0}) AS last"


def queries(spark: SparkSession, bootstrap: str, topic: str) -> dict[str, Callable[[], DataFrame]]:
    """Return the same queries on both sources."""

    def source(name: str, **options: str) -> DataFrame:
        reader = spark.read.format(name).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
        return reader.options(**options).load()

    def aggregate(frame: DataFrame, expressions: str) -> DataFrame:
        return frame.selectExpr(*expressions.split(", "))

    sizes = "sum(length(value)) AS bytes, count_if(key IS NULL) AS null_keys"
    raw_sizes = "sum(value_size) AS bytes, count_if(key_size < 0) AS null_keys"
    raw_numbers = f"{_NUMBERS.format('timestamp')}, {raw_sizes}"
    time_of = "unix_millis(timestamp)"
    return {
        "numbers, Spark's own": lambda: aggregate(source("kafka"), f"{_NUMBERS.format(time_of)}, {sizes}"),
        "numbers, raw": lambda: aggregate(source("sluicegate", columns="timestamp,key_size,value_size"), raw_numbers),
        "full rows, Spark's own": lambda: aggregate(source("kafka"), _FULL.format(time_of)),
        "full rows, raw": lambda: aggregate(
            source("sluicegate", columns="key,value,topic,partition,offset,timestamp,timestamp_type"),
            _FULL.format("timestamp"),
        ),
    }


def profile_cells(spark: SparkSession, bootstrap: str, topic: str) -> Callable[[], list[Row]]:
    """Return a query that reads what the profile job reads, and sums it by topic, partition, hour and producer."""
    return lambda: read_cells(spark, Topics(bootstrap, (topic,)), time.time_ns() // 1_000_000, _HOUR_MS, None).collect()


def whole_profile(spark: SparkSession, bootstrap: str, topic: str, out: str) -> Callable[[], object]:
    """Return the complete profile job, including its output."""
    results = Results(spark, out)
    return lambda: profile(spark, Topics(bootstrap, (topic,)), results, time.time_ns() // 1_000_000, _HOUR_MS, None)


def extraction(spark: SparkSession, bootstrap: str, topic: str, out: str) -> Callable[[], object]:
    """Return the job extract, which writes all records with event time into a new folder each time."""
    number = count()

    def extract() -> None:
        results = Results(spark, f"{out}/{next(number)}")
        run(spark, Topics(bootstrap, (topic,)), results, BuiltInExtractor("skip"), 4_000_000)

    return extract


def rates_of(spark: SparkSession, address: str, topic: str, records: int, rounds: int, out: str) -> dict[str, float]:
    """Return the records per second of each query, as the median of all rounds except the first."""
    rates: dict[str, list[float]] = {}
    asked: dict[str, Callable[[], object]] = {
        what: lambda query=query: query().collect() for what, query in queries(spark, address, topic).items()
    }
    asked["profile, read and added up"] = profile_cells(spark, address, topic)
    asked["profile, the whole job"] = whole_profile(spark, address, topic, f"{out}/profile")
    asked["extract, the whole job"] = extraction(spark, address, topic, f"{out}/extract")
    for _ in range(rounds):
        for what, ask in asked.items():
            started = time.perf_counter()
            ask()
            seconds = time.perf_counter() - started
            rates.setdefault(what, []).append(records / seconds)
            print(f"{what}: {records / seconds / 1e6:.2f} M records/s", file=sys.stderr)
        shutil.rmtree(f"{out}/extract")
    return {what: statistics.median(values[1:]) for what, values in rates.items()}
