"""The pipeline's speed in one run: against Spark's own source, with times in order and in none, and what many
partitions and many producers cost.

Run: python -m bench.pipeline_speed [--records N] [--rounds N] [--partitions N] [--producers N] (make bench-pipeline).
Writes bench/results/pipeline_speed.json and two tables in bench/results/pipeline.md. Needs brokers and jars: make kafka
.spark/4.0/.complete
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from bench import streams
from bench.ending import end_on_sigterm
from bench.figures import RESULTS, fill_in
from bench.machine import describe
from bench.odd_topics import disordered, many_partitions, many_producers
from bench.pipeline_scale import PAGE, Measured, check, measured, run_jobs
from bench.polluted_topic import PollutedTopic, polluted_topic
from bench.raw_source import rates_of
from bench.streams import MB, Stream
from bench.targets import Target, broker
from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.jobs.profile.report import write_report as write_profile
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.job import list_changes, summary_of, write_plan
from sluicegate.pipeline.jobs.repair.report import write_report as write_repair
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.integration.topics import create_topic
from tests.pipeline.session import LONG_LIVED, spark_session

_PARTITIONS, _SIZE, _HOUR_MS = 4, 100, 3_600_000
_A_PARTITION, _A_PRODUCER = 280, 5
_OWN = "numbers, Spark's own"
_FILE = RESULTS / "pipeline_speed.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A line of the table: `name` in `rates_of`, and the smallest accepted ratio to `against`."""

    name: str
    label: str
    against: str | None = None
    goal: float | None = None


_LINES = (
    Asked("profile, read and added up", "what `profile` reads and adds up", _OWN, 4),
    Asked("profile, the whole job", "the whole job `profile`, with its tables", _OWN, 3),
    Asked("extract, the whole job", "the whole job `extract`, with its files (at least 1.5 M)"),
)


def rates_table(in_order: dict[str, float], in_none: dict[str, float], records: int, rounds: int) -> str:
    """Markdown."""
    lines = [
        f"{records / 1e6:g} million records of {_SIZE} bytes, lz4, {_PARTITIONS} partitions, one session, medians of "
        f"{rounds - 1} rounds after a warm-up round, {_today()}:",
        "",
        "| what | records/s, in order | times Spark's own | records/s, out of order | times Spark's own | at least |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for line in _LINES:
        cells = [line.label]
        for rates in (in_order, in_none):
            own = "" if line.against is None else f"{rates[line.name] / rates[line.against]:.1f}"
            cells += [f"{rates[line.name] / 1e6:.2f} M", own]
        lines.append(f"| {' | '.join([*cells, '' if line.goal is None else f'{line.goal:g}'])} |")
    return "\n".join(lines)


def jobs_table(topics: dict[str, list[Measured]]) -> str:
    """Markdown."""
    lines = ["| topic | records | job | seconds |", "| --- | --- | --- | --- |"]
    for label, jobs in topics.items():
        lines += [f"| {label} | {job.records:,} | {job.job} | {job.seconds:.1f} |" for job in jobs]
    return "\n".join(lines)


def with_pages(spark: SparkSession, address: str, topic: PollutedTopic, folder: Path) -> list[Measured]:
    """What a profile and a repair's dry run take with their pages, each checked against what is known of the topic."""
    found: list[Measured] = []
    topics, now_ms = Topics(address, (topic.name,)), time.time_ns() // 1_000_000
    results = Results(spark, str(folder / topic.name))
    with measured(spark, "profile, with its page", topic, _PARTITIONS, found):
        summary = profile(spark, topics, results, now_ms, _HOUR_MS, None)
        write_profile(results, summary)
        results.write_summary(summary)
    damage = {kind: count for kind, count in summary["topics"][topic.name]["damage"].items() if count}
    check(lambda: damage == topic.damage, damage)
    with measured(spark, "repair, dry run, with its page", topic, _PARTITIONS, found):
        plan = write_plan(spark, topics, results, {topic.name: f"{topic.name}-clean"}, Rules(now_ms, _HOUR_MS))
        listing = list_changes(spark, topics, results, plan)
        summary = summary_of(plan, listing, None, {})
        write_repair(results, summary, now_ms)
        results.write_summary(summary)
    repaired = summary["topics"][topic.name]["repaired"]
    check(lambda: repaired == topic.damage, repaired)
    return found


def in_order(address: str, partitions: int, records: int) -> PollutedTopic:
    """Sound records of 100 bytes by Java's load tool; `records` are rounded to megabytes."""
    topic = create_topic(address, {}, partitions, prefix="ordered")
    stream = Stream("lz4", _SIZE, "lz4", 65_536, records * _SIZE // MB)
    streams.java_producer(Target("direct", address, address, None), topic, stream)
    return PollutedTopic(topic, stream.records, {})


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def main() -> None:
    """Measure, and write what was found where it is read."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=4, help="the first is for warming up")
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--producers", type=int, default=20_000)
    asked = parser.parse_args()
    rates: list[dict[str, float]] = []
    jobs: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name, broker(Path(name)) as (address, _, _):
        folder, spark = Path(name), spark_session(Path(name), LONG_LIVED)
        run_jobs(spark, address, polluted_topic(address, 2, 0.1, 2000), 2, folder)  # warms up
        make: Callable[[str, int, int], PollutedTopic]
        for make in (in_order, disordered):
            topic = make(address, _PARTITIONS, asked.records)
            rates.append(rates_of(spark, address, topic.name, topic.good, asked.rounds, f"{name}/{topic.name}"))
        topic = many_producers(address, _PARTITIONS, asked.producers, _A_PRODUCER)
        jobs[f"{asked.producers:,} producers"] = with_pages(spark, address, topic, folder)
        topic = many_partitions(address, asked.partitions, _A_PARTITION)
        jobs[f"{asked.partitions:,} partitions"] = run_jobs(spark, address, topic, asked.partitions, folder)
        spark.stop()
    found = {
        "machine": describe() | {"date": _today()},
        "records_a_second": dict(zip(("in order", "out of order"), rates, strict=True)),
        "jobs": {label: [asdict(job) for job in its] for label, its in jobs.items()},
    }
    _FILE.write_text(json.dumps(found, indent=2) + "\n")
    fill_in(PAGE, "speed", rates_table(rates[0], rates[1], asked.records, asked.rounds))
    fill_in(PAGE, "many", jobs_table(jobs))


if __name__ == "__main__":
    main()
