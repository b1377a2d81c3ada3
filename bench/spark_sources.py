"""The raw Spark source against Spark's own, by the number of partitions: CPU seconds and seconds in one run, and the
connections and requests of one query.

Run: python -m bench.spark_sources [--rounds N] [--topics 1000x280,4x750000] (make bench-pipeline). Writes
spark_sources.json and a table of pipeline.md in bench/results. Needs brokers and jars: make kafka
.spark/4.0/.complete
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from bench.ending import end_on_sigterm
from bench.figures import RESULTS, fill_in
from bench.machine import describe, with_children
from bench.odd_topics import sound_partitions
from bench.raw_source import queries
from bench.request_counts import Counts, counting_relay
from bench.targets import broker
from tests.pipeline.session import LONG_LIVED, spark_session

_PAGE = RESULTS / "pipeline.md"
_FILE = RESULTS / "spark_sources.json"
_TICK = os.sysconf("SC_CLK_TCK")
_QUERIES = ("numbers", "full rows")
_MANY = 1000
_WARM_UP = (64, 280)  # partitions, records of each
_GOAL_MANY, _GOAL = 1.2, 2.0


@dataclass(frozen=True, slots=True)
class Cost:
    """One query: seconds, CPU seconds of Spark, its Python workers and the broker, connections and requests."""

    seconds: float
    cpu_seconds: float
    connections: int
    requests: dict[str, int]


@dataclass(frozen=True, slots=True)
class Compared:
    """A query on both sources."""

    partitions: int
    records: int
    query: str
    own: Cost
    raw: Cost


def cpu_seconds() -> float:
    """CPU seconds so far of all processes below this one, including those that have ended."""
    ticks = 0
    for pid in with_children(os.getpid())[1:]:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICK


def compare_sources(
    spark: SparkSession, address: str, relayed: str, counts: Counts, partitions: int, each: int, rounds: int
) -> list[Compared]:
    """Ask each query of both sources in turns. Raises RuntimeError if the results differ."""
    topic = sound_partitions(address, partitions, each)
    costs: dict[str, list[tuple[float, float]]] = {}
    found: dict[str, tuple[object, ...]] = {}
    for number in range(rounds):
        for what, query in queries(spark, address, topic.name).items():
            began, used = time.perf_counter(), cpu_seconds()
            found[what] = tuple(query().collect()[0])
            cost = (time.perf_counter() - began, cpu_seconds() - used)
            print(
                f"{partitions} partitions, round {number}, {what}: {cost[0]:.2f} s, CPU {cost[1]:.2f} s",
                file=sys.stderr,
            )
            costs.setdefault(what, []).append(cost)
    asked: dict[str, tuple[int, dict[str, int]]] = {}
    for what, query in queries(spark, relayed, topic.name).items():
        counts.clear()
        query().collect()
        asked[what] = (counts.connections, dict(counts.requests))

    def cost_of(what: str) -> Cost:
        seconds, used = (statistics.median(each) for each in zip(*costs[what], strict=True))
        return Cost(round(seconds, 2), round(used, 2), *asked[what])

    rows = []
    for query_name in _QUERIES:
        own, raw = f"{query_name}, Spark's own", f"{query_name}, raw"
        if found[own] != found[raw]:
            raise RuntimeError(f"the sources differ: {found[own]} and {found[raw]}")
        rows.append(Compared(partitions, topic.good, query_name, cost_of(own), cost_of(raw)))
    return rows


def table(rows: list[Compared], rounds: int) -> str:
    """Markdown."""
    lines = [
        f"Records of 75 bytes, lz4, one warm session, medians of {rounds} round{'s' * (rounds > 1)}, "
        f"{datetime.now(UTC).date().isoformat()}. CPU seconds are those of Spark, its Python workers and the broker:",
        "",
        "| partitions | records | query | times Spark's own, by CPU seconds | by seconds | at least | CPU seconds | "
        "connections | requests |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        own, raw = row.own, row.raw
        goal = _GOAL_MANY if row.partitions >= _MANY else _GOAL
        pairs = (
            (f"{own.cpu_seconds:.1f}", f"{raw.cpu_seconds:.1f}"),
            (f"{own.connections:,}", f"{raw.connections:,}"),
            (f"{sum(own.requests.values()):,}", f"{sum(raw.requests.values()):,}"),
        )
        cells = [f"{row.partitions:,}", f"{row.records:,}", row.query]
        cells += [f"{own.cpu_seconds / raw.cpu_seconds:.1f}", f"{own.seconds / raw.seconds:.1f}", f"{goal:g}"]
        cells += [f"{theirs} : {ours}" for theirs, ours in pairs]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and write what was found where it is read."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--topics", default="1000x280,4x750000,12x250000")
    asked = parser.parse_args()
    rows: list[Compared] = []
    with (
        tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name,
        broker(Path(name)) as (address, upstream, relay),
        counting_relay(relay, upstream) as counts,
    ):
        spark = spark_session(Path(name), LONG_LIVED)
        compare_sources(spark, address, f"127.0.0.1:{relay}", counts, *_WARM_UP, 1)
        for shape in asked.topics.split(","):
            partitions, each = (int(number) for number in shape.split("x"))
            rows += compare_sources(spark, address, f"127.0.0.1:{relay}", counts, partitions, each, asked.rounds)
            found = {"machine": describe(), "date": datetime.now(UTC).date().isoformat()}
            _FILE.write_text(json.dumps(found | {"sources": [asdict(row) for row in rows]}, indent=2) + "\n")
            fill_in(_PAGE, "sources", table(rows, asked.rounds))
        spark.stop()


if __name__ == "__main__":
    main()
