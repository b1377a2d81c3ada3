"""The raw Spark source against Spark's own Kafka source, on one topic in one session, in turns.

Run: python -m bench.raw_source [--records N] [--rounds N]. Needs brokers and jars: make kafka .spark/.complete
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from bench import streams
from bench.streams import MB, Stream
from bench.targets import Target, broker
from pipeline.profile.job import cells, profile
from pipeline.results import Results
from pipeline.topics import Topics
from tests.integration.topics import create_topic
from tests.pipeline.session import spark_session

_PARTITIONS = 4
_SIZE = 100
_HOUR_MS = 3_600_000
_NUMBERS = "min({0}) AS first, max({0}) AS last, count(*) AS records"
_FULL = "sum(length(value)) AS bytes, count(key) AS keys, max(offset) AS offset, max({0}) AS last"


def queries(spark: SparkSession, bootstrap: str, topic: str) -> dict[str, Callable[[], DataFrame]]:
    """The same questions to both sources."""

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
    """What the profile job reads, added up by topic, partition, hour and producer."""
    return lambda: cells(spark, Topics(bootstrap, (topic,)), time.time_ns() // 1_000_000, _HOUR_MS, None).collect()


def whole_profile(spark: SparkSession, bootstrap: str, topic: str, out: str) -> Callable[[], object]:
    """The whole profile job, with what it writes."""
    results = Results(spark, out)
    return lambda: profile(spark, Topics(bootstrap, (topic,)), results, time.time_ns() // 1_000_000, _HOUR_MS, None)


def main() -> None:
    """Measure and print records a second, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=4, help="the first is for warming up")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name, broker(Path(name)) as (address, _, _):
        topic = create_topic(address, {}, _PARTITIONS, prefix="bench")
        stream = Stream("lz4", _SIZE, "lz4", 65_536, arguments.records * _SIZE // MB)
        streams.java_producer(Target("direct", address, address, None), topic, stream)
        spark = spark_session(Path(name))
        rates: dict[str, list[float]] = {}
        for _ in range(arguments.rounds):
            asked: dict[str, Callable[[], object]] = {
                what: lambda query=query: query().collect() for what, query in queries(spark, address, topic).items()
            }
            asked["profile, read and added up"] = profile_cells(spark, address, topic)
            asked["profile, the whole job"] = whole_profile(spark, address, topic, f"{name}/profile")
            for what, ask in asked.items():
                started = time.perf_counter()
                ask()
                seconds = time.perf_counter() - started
                rates.setdefault(what, []).append(stream.records / seconds)
                print(f"{what}: {stream.records / seconds / 1e6:.2f} M records/s", file=sys.stderr)
        spark.stop()
    middle = {what: statistics.median(values[1:]) for what, values in rates.items()}
    own = "numbers, Spark's own"
    compared = {
        "numbers, raw": (own, 4),
        "full rows, raw": ("full rows, Spark's own", 1),
        "profile, read and added up": (own, 6),
        "profile, the whole job": (own, None),
    }
    for what, (against, goal) in compared.items():
        wanted = f" (goal: {goal})" if goal else ""
        ratio = middle[what] / middle[against]
        print(f"{what}: {middle[what] / 1e6:.2f} M records/s, {ratio:.2f} times {against}{wanted}")


if __name__ == "__main__":
    main()
