"""One large partition on one core and on two: seconds of each job, in turns, each in a session of its own. The broker
is kept on the same cores, as on a machine that has no more: left on both, it would work beside a job that is said to
have one, and take from a job that has two. And the CPU seconds of a profile's parts, which other load changes little:
as one piece, in eight, and what one task has to do then (`--rounds 0`: these alone).

Run: python -m bench.one_partition [--millions N] [--rounds N] [--jobs profile,audit,plan,verify]. Writes
bench/results/one_partition.json. Needs brokers and jars: make kafka .spark/4.0/.complete
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.ending import end_on_sigterm
from bench.figures import RESULTS
from bench.machine import confine, describe
from bench.pipeline_speed import in_order
from bench.targets import broker
from sluicegate.config.loading import load_file
from sluicegate.pipeline.commands.spark import session
from sluicegate.pipeline.jobs.audit.job import audit
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.pipeline.jobs.profile.cells import cells_of
from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.jobs.profile.reading import Reading, count_timestamps
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.job import write_plan
from sluicegate.pipeline.jobs.verify.job import verify
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.chunks import Chunk, cut_ranges
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.topics import Topics
from tests.broker.child_processes import killed_with_parent

_HOUR_MS = 3_600_000
_FILE = RESULTS / "one_partition.json"
_CORES = (1, 2)
_PIECES = 8
_BOUNDS = """upstream: {{bootstrap: ["{address}"]}}
listen: {{bootstrap: "127.0.0.1:1", broker_port_base: 19100, advertised_host: 127.0.0.1}}
defaults: {{message.timestamp.after.max.ms: 3600000}}
"""


def jobs_of(address: str, topic: str, results: Results, now_ms: int) -> dict[str, Callable[[Any], object]]:
    """What each returns has to be the same however many cores there are."""
    topics, file = Topics(address, (topic,)), Path(results.path("bounds.yaml"))
    file.write_text(_BOUNDS.format(address=address))
    config = load_file(file, {}).config
    policies = policies_of(config, {})
    return {
        "profile": lambda spark: profile(spark, topics, results, now_ms, _HOUR_MS, None),
        "audit": lambda spark: audit(spark, topics, results, config, policies, now_ms, None, 5),
        "plan": lambda spark: write_plan(
            spark, topics, results, {topic: f"{topic}-clean"}, Rules(now_ms, _HOUR_MS)
        ).as_json(),
        "verify": lambda spark: verify(spark, topics, topic, results, now_ms),
    }


def one_run(address: str, topic: str, cores: int, jobs: list[str], now_ms: int, rounds: int) -> None:
    """In a process of its own; prints a line of JSON for each job and round."""
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as folder:
        spark = session("bench", f"local[{cores}]")
        asked = jobs_of(address, topic, Results(spark, folder), now_ms)
        for _ in range(rounds):
            for job in jobs:
                before, started = os.getloadavg()[0], time.perf_counter()
                found = asked[job](spark)
                seconds = time.perf_counter() - started
                outcome = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:12]
                row = {"job": job, "cores": cores, "seconds": round(seconds, 2), "load": round(before, 1)}
                print(json.dumps(row | {"result": outcome}), flush=True)
        spark.stop()


def cpu_seconds(address: str, topic: str, now_ms: int) -> dict[str, Any]:
    """In this process: what tasks would do, one after the other; the least of three rounds each."""
    topics = Topics(address, (topic,))
    options, (whole,) = source_options(topics.options), topics.ranges()
    in_one, in_eight = [Chunk(whole, whole.start, whole.end)], cut_ranges([whole], _PIECES)[0]

    def read(chunks: list[Chunk]) -> list[pa.Table]:
        return [count_timestamps(options, chunk, now_ms) for chunk in chunks]

    def finish(parts: list[pa.Table]) -> pa.Table:
        return cells_of(whole, Reading.from_table(pa.concat_tables(parts)), now_ms, _HOUR_MS, None)

    parts = read(in_eight)
    found = {
        "read as one": _least(lambda: read(in_one)),
        "read in pieces": _least(lambda: read(in_eight)),
        "the largest piece": max(_least(partial(read, [chunk])) for chunk in in_eight),
        "put together, clock and all": _least(lambda: finish(parts)),
    }
    rest = found["put together, clock and all"]
    alone = (found["read as one"] + rest) / (found["read in pieces"] / 2 + rest)
    return {
        "pieces": len(in_eight),
        **{outcome: round(s, 3) for outcome, s in found.items()},
        "at most": round(alone, 2),
    }


def _least(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(3):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


def main() -> None:
    """Measure, check that results are the same, and write."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", default="profile,audit,plan,verify")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        address, topic, cores, now_ms = asked.run
        one_run(address, topic, int(cores), asked.jobs.split(","), int(now_ms), asked.rounds)
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name, broker(Path(name)) as (address, _, _):
        topic = in_order(address, 1, round(asked.millions * 1e6))
        now_ms = time.time_ns() // 1_000_000
        cpu = cpu_seconds(address, topic.name, now_ms)
        print(json.dumps(cpu, indent=2))
        for _ in range(asked.rounds):
            for cores in _CORES:
                confine(os.getpid(), cores)
                command = [sys.executable, "-m", "bench.one_partition", "--jobs", asked.jobs, "--rounds", "2", "--run"]
                outcome = subprocess.run(
                    killed_with_parent([*command, address, topic.name, str(cores), str(now_ms)]),
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                lines = [json.loads(line) for line in outcome.stdout.splitlines() if line.startswith("{")]
                rows += lines[len(lines) // 2 :]  # the first run is for warming up
                print(outcome.stdout, file=sys.stderr)
    found: dict[str, Any] = {"machine": describe(), "records": topic.good, "cpu": cpu, "rows": rows, "best": {}}
    for job in asked.jobs.split(",") if rows else ():
        its = [row for row in rows if row["job"] == job]
        if len({row["result"] for row in its}) != 1:
            raise RuntimeError(f"{job}: the results differ: {its}")
        best = [min(row["seconds"] for row in its if row["cores"] == cores) for cores in _CORES]
        found["best"][job] = {"one core": best[0], "two cores": best[1], "times as fast": round(best[0] / best[1], 2)}
    _FILE.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found["best"], indent=2))


if __name__ == "__main__":
    main()
