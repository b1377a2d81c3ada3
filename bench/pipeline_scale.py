"""The jobs against the number of records and of partitions: seconds, records a second, the share of a bare loop of
fetches, bytes shuffled, and memory at the top.

Run: python -m bench.pipeline_scale [--millions 1,5,20,100] [--partitions 1,4,16,64]. Needs brokers and jars: make kafka
.spark/4.0/.complete; and 40 GB of disk for 100 million. Writes pipeline.json and a table of pipeline.md in
bench/results.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.ending import end_on_sigterm
from bench.figures import fill_in
from bench.machine import Peaks, describe, peaks
from bench.polluted_topic import PollutedTopic, polluted_topic
from bench.targets import broker
from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.job import list_changes, write_clean_topics, write_plan
from sluicegate.pipeline.jobs.verify.job import verify
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.cluster_pool import pooled_cluster
from sluicegate.pipeline.kafka.fetching import stored_batches
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.chunks import cut_ranges
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.topics import Topics
from tests.pipeline.session import LONG_LIVED, spark_session

_HOUR_MS = 3_600_000
_DAMAGED = 2000
_MIDDLE_MILLIONS, _MIDDLE_PARTITIONS = 5, 4
_AT_ONCE = 2
_RESULTS = Path(__file__).parent / "results" / "pipeline.json"
PAGE = Path(__file__).parent / "results" / "pipeline.md"


@dataclass(frozen=True, slots=True)
class Measured:
    """One job over one topic; `shuffled` is what its stages wrote for others to read (bytes)."""

    job: str
    records: int
    partitions: int
    seconds: float
    shuffled: int
    peaks: Peaks


@dataclass(frozen=True, slots=True)
class Scaled:
    """All jobs over one topic, and how long a bare loop of fetches takes for it (s): what its broker gives."""

    jobs: list[Measured]
    bare_seconds: float


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
    with peaks() as held:
        yield
        seconds = time.perf_counter() - started
    records = topic.good + sum(topic.damage.values())
    into.append(Measured(job, records, partitions, seconds, shuffled_so_far(spark) - shuffled, held))
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
        plan = write_plan(spark, topics, results("repair"), {topic.name: clean}, Rules(now_ms, _HOUR_MS))
        listing = list_changes(spark, topics, results("repair"), plan)
    changes = listing.changes
    check(lambda: sum(row["records"] for row in changes if row["solved"]) == sum(topic.damage.values()), changes)
    with measured(spark, "repair, writing", topic, partitions, found):
        written = write_clean_topics(spark, topics, results("repair"), plan, listing)
    check(lambda: sum(each.records for each in written) == found[0].records, written)
    with measured(spark, "verify", topic, partitions, found):
        verified = verify(spark, topics, clean, results("verify"), now_ms)
    check(lambda: verified["same"] and verified["repairs"] == topic.damage, verified)
    return found


def bare_seconds(address: str, topic: PollutedTopic) -> float:
    """How long it takes to fetch all of a topic on two connections at once, seeing nothing but where batches end."""
    topics = Topics(address, (topic.name,))
    options = source_options(topics.options)
    chunks = [chunk for some in cut_ranges(topics.ranges(), _AT_ONCE * 4) for chunk in some]

    def fetch(wanted: OffsetRange) -> None:
        with pooled_cluster(options.bootstrap, options.settings) as cluster:
            for _ in stored_batches(cluster, wanted, options.committed):
                pass

    started = time.perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(fetch, (OffsetRange(chunk.whole.of, chunk.start, chunk.end) for chunk in chunks)))
    return time.perf_counter() - started


def check(is_so: Callable[[], bool], actual: Any) -> None:
    """A figure of a job that went wrong is none."""
    if not is_so():
        raise RuntimeError(f"a job's result is wrong: {actual}")


def table(cases: list[Scaled]) -> str:
    """Markdown."""
    lines = [
        "| job | records | partitions | seconds | records/s | of a bare fetch loop | shuffled | "
        "driver's Python, MB | JVM, MB | Python workers, MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows = [(row, case.bare_seconds / row.seconds) for case in cases for row in case.jobs]
    for row, share in sorted(rows, key=lambda pair: (pair[0].job, pair[0].partitions, pair[0].records)):
        held = (f"{size / 2**20:.0f}" for size in (row.peaks.driver, row.peaks.jvm, row.peaks.workers))
        cells = (row.job, f"{row.records:,}", str(row.partitions), f"{row.seconds:.1f}")
        cells += (f"{row.records / row.seconds / 1e6:.2f} M", f"{share:.0%}", f"{row.shuffled / 1024:.1f} KiB", *held)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all sizes with four partitions, and all counts of partitions with five million records."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", default="1,5,20,100")
    parser.add_argument("--partitions", default="1,4,16,64")
    arguments = parser.parse_args()
    millions = [float(text) for text in arguments.millions.split(",")]
    partitions = [int(text) for text in arguments.partitions.split(",")]
    by_count = ((_MIDDLE_MILLIONS, count) for count in partitions)
    asked = dict.fromkeys([*by_count, *((size, _MIDDLE_PARTITIONS) for size in millions)])
    found: list[Scaled] = []
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name, broker(Path(name)) as (address, _, _):
        spark = spark_session(Path(name), LONG_LIVED)
        run_jobs(spark, address, polluted_topic(address, 2, 0.1, _DAMAGED), 2, Path(name))  # warms up
        for size, count in asked:
            topic = polluted_topic(address, count, size, _DAMAGED)
            bare = bare_seconds(address, topic)
            found.append(Scaled(run_jobs(spark, address, topic, count, Path(name)), bare))
            _RESULTS.write_text(json.dumps({"machine": describe(), "cases": list(map(asdict, found))}, indent=2) + "\n")
            fill_in(PAGE, "scale", table(found))
        spark.stop()


if __name__ == "__main__":
    main()
