"""The jobs against the number of records and of partitions: seconds, records a second, and bytes shuffled.

Run: python -m bench.pipeline_scale [--millions 1,5,20] [--partitions 1,4,16]. Needs brokers and jars: make kafka
.spark/.complete. Writes bench/results/pipeline.json and the table in docs/pipeline.md.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.machine import describe
from bench.page import fill_in
from bench.polluted_topic import PollutedTopic, polluted_topic
from bench.targets import broker
from sluicegate.pipeline.profile.job import profile
from sluicegate.pipeline.repair.correction import Rules
from sluicegate.pipeline.repair.job import apply, listed, planned
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.topics import Topics
from sluicegate.pipeline.verify.job import verify
from tests.pipeline.session import LONG_LIVED, spark_session

_HOUR_MS = 3_600_000
_DAMAGED = 2000
_RESULTS = Path(__file__).parent / "results" / "pipeline.json"
PAGE = Path(__file__).parent.parent / "docs" / "pipeline.md"


@dataclass(frozen=True, slots=True)
class Measured:
    """One job over one topic; `shuffled` is what its stages wrote for others to read (bytes)."""

    job: str
    records: int
    partitions: int
    seconds: float
    shuffled: int


def shuffled_so_far(spark: SparkSession) -> int:
    """By all stages of the session, as Spark counts it."""
    jvm, gateway = spark.sparkContext._jvm, spark.sparkContext._gateway
    assert jvm is not None
    assert gateway is not None
    store = spark.sparkContext._jsc.sc().statusStore()
    stages = store.stageList(None, False, False, gateway.new_array(jvm.double, 0), None)
    return sum(stages.apply(i).shuffleWriteBytes() for i in range(stages.size()))


@contextmanager
def measured(
    spark: SparkSession, job: str, topic: PollutedTopic, partitions: int, into: list[Measured]
) -> Iterator[None]:
    """What happens within."""
    shuffled, started = shuffled_so_far(spark), time.perf_counter()
    yield
    seconds = time.perf_counter() - started
    records = topic.good + sum(topic.damage.values())
    into.append(Measured(job, records, partitions, seconds, shuffled_so_far(spark) - shuffled))
    print(f"{job}: {records:,} records, {partitions} partitions, {seconds:.1f} s", file=sys.stderr)


def run_jobs(spark: SparkSession, address: str, topic: PollutedTopic, partitions: int, folder: Path) -> list[Measured]:
    """Profile, repair and verify, each checked against what is known of the topic."""
    found: list[Measured] = []
    topics, clean = Topics(address, (topic.name,)), f"{topic.name}-clean"
    now_ms = time.time_ns() // 1_000_000

    def results(job: str) -> Results:
        return Results(spark, str(folder / topic.name / job))

    with measured(spark, "profile", topic, partitions, found):
        summary = profile(spark, topics, results("profile"), now_ms, _HOUR_MS, None)
    check(lambda: {k: n for k, n in summary["topics"][topic.name]["damage"].items() if n} == topic.damage, summary)
    with measured(spark, "repair, dry run", topic, partitions, found):
        plan = planned(spark, topics, results("repair"), {topic.name: clean}, Rules(now_ms, _HOUR_MS))
        listing = listed(spark, topics, results("repair"), plan)
    changes = listing.changes
    check(lambda: sum(row["records"] for row in changes if row["solved"]) == sum(topic.damage.values()), changes)
    with measured(spark, "repair, writing", topic, partitions, found):
        written = apply(spark, topics, results("repair"), plan, listing)
    check(lambda: sum(each.records for each in written) == found[0].records, written)
    with measured(spark, "verify", topic, partitions, found):
        verified = verify(spark, topics, clean, results("verify"), now_ms)
    check(lambda: verified["same"] and verified["repairs"] == topic.damage, verified)
    return found


def check(is_so: Callable[[], bool], told: Any) -> None:
    """A figure of a job that went wrong is none."""
    if not is_so():
        raise RuntimeError(f"a job's result is wrong: {told}")


def table(rows: list[Measured]) -> str:
    """Markdown."""
    lines = ["| job | records | partitions | seconds | records/s | shuffled |", "| --- | --- | --- | --- | --- | --- |"]
    for row in sorted(rows, key=lambda r: (r.job, r.partitions, r.records)):
        rate, shuffled = f"{row.records / row.seconds / 1e6:.2f} M", f"{row.shuffled / 1024:.1f} KiB"
        lines.append(f"| {row.job} | {row.records:,} | {row.partitions} | {row.seconds:.1f} | {rate} | {shuffled} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all sizes with four partitions, and all partitions with the middle size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", default="1,5,20")
    parser.add_argument("--partitions", default="1,4,16")
    arguments = parser.parse_args()
    millions = [float(text) for text in arguments.millions.split(",")]
    partitions = [int(text) for text in arguments.partitions.split(",")]
    middle_size, middle_count = millions[len(millions) // 2], partitions[len(partitions) // 2]
    cases = dict.fromkeys([*((size, middle_count) for size in millions), *((middle_size, n) for n in partitions)])
    rows: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name, broker(Path(name)) as (address, _, _):
        spark = spark_session(Path(name), LONG_LIVED)
        run_jobs(spark, address, polluted_topic(address, 2, 0.1, _DAMAGED), 2, Path(name))  # warms up
        for size, count in cases:
            rows += run_jobs(spark, address, polluted_topic(address, count, size, _DAMAGED), count, Path(name))
        spark.stop()
    _RESULTS.write_text(json.dumps({"machine": describe(), "jobs": [asdict(row) for row in rows]}, indent=2) + "\n")
    fill_in(PAGE, "scale", table(rows))


if __name__ == "__main__":
    main()
