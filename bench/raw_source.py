"""The raw Spark source against Spark's own Kafka source, on one topic in one session, in turns.

Run: python -m bench.raw_source [--records N] [--rounds N]. Needs brokers and jars: make kafka .spark/.complete
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row, SparkSession

from bench import streams
from bench.streams import MB, Stream
from bench.targets import Target, broker
from sluicegate.pipeline.extract.built_in import BuiltIn
from sluicegate.pipeline.extract.job import run
from sluicegate.pipeline.profile.job import cells, profile
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.topics import Topics
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


def extraction(spark: SparkSession, bootstrap: str, topic: str, out: str) -> Callable[[], object]:
    """The job extract into a new folder each time: event time for each record, all written."""
    number = count()

    def extract() -> None:
        results = Results(spark, f"{out}/{next(number)}")
        run(spark, Topics(bootstrap, (topic,)), results, BuiltIn("skip"), 4_000_000)

    return extract


def disordered(bootstrap: str, records: int) -> str:
    """A topic whose times are up to an hour out of order within batches."""
    topic = create_topic(bootstrap, {}, _PARTITIONS, prefix="bench")
    settings = {"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 50}
    producer = Producer({**settings, "queue.buffering.max.messages": 500_000, "batch.size": 65_536})
    now_ms = time.time_ns() // 1_000_000
    chance = random.Random(12)  # noqa: S311  # the same each time
    value = chance.randbytes(_SIZE // 2)
    for i in range(records):
        while True:
            try:
                at = now_ms - chance.randrange(_HOUR_MS)
                producer.produce(topic, b"%050d" % i + value, partition=i // 500 % _PARTITIONS, timestamp=at)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("not everything was delivered")
    return topic


def measured(spark: SparkSession, address: str, topic: str, records: int, rounds: int, out: str) -> dict[str, float]:
    """Records a second of each, the median of all rounds but the first."""
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
    return {what: statistics.median(values[1:]) for what, values in rates.items()}


def main() -> None:
    """Measure and print records a second, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=4, help="the first is for warming up")
    arguments = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name, broker(Path(name)) as (address, _, _):
        topic = create_topic(address, {}, _PARTITIONS, prefix="bench")
        stream = Stream("lz4", _SIZE, "lz4", 65_536, arguments.records * _SIZE // MB)
        streams.java_producer(Target("direct", address, address, None), topic, stream)
        other = disordered(address, arguments.records)
        spark = spark_session(Path(name))
        for which, its, records in (
            ("in order", topic, stream.records),
            ("up to an hour out of order", other, arguments.records),
        ):
            found[which] = measured(spark, address, its, records, arguments.rounds, f"{name}/{its}")
        spark.stop()
    own = "numbers, Spark's own"
    goals: dict[str, tuple[str, dict[str, float]]] = {
        "numbers, raw": (own, {"in order": 4, "up to an hour out of order": 3}),
        "full rows, raw": ("full rows, Spark's own", {"in order": 1, "up to an hour out of order": 2}),
        "profile, read and added up": (own, {"in order": 6, "up to an hour out of order": 4}),
        "profile, the whole job": (own, {"up to an hour out of order": 3}),
    }
    for which, middle in found.items():
        print(f"Times {which}:")
        for what, (against, goal) in goals.items():
            wanted = f" (goal: {goal[which]})" if which in goal else ""
            ratio = middle[what] / middle[against]
            print(f"  {what}: {middle[what] / 1e6:.2f} M records/s, {ratio:.2f} times {against}{wanted}")
        print(f"  extract, the whole job: {middle['extract, the whole job'] / 1e6:.2f} M records/s (goal: 1.5)")


if __name__ == "__main__":
    main()
