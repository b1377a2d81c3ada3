"""Runs each job twice, once undisturbed and once while an executor is killed, and prints both results. A repair is only
written once, while an executor is killed, and then compared with its source.

Run: python -m tests.pipeline.lost_executors MASTER ADDRESS TOPIC FOLDER NOW_MS JOB…. This is a separate program,
because a process has only one session. If MASTER is `standalone`, the program starts a cluster.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.loading import load
from sluicegate.pipeline import audit as validated
from sluicegate.pipeline import replay
from sluicegate.pipeline import watch as watched
from sluicegate.pipeline.commands.spark import session
from sluicegate.pipeline.jobs.audit.findings import RowKind
from sluicegate.pipeline.jobs.audit.job import audit
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.pipeline.jobs.extract import job as extracting
from sluicegate.pipeline.jobs.extract.built_in import BuiltInExtractor
from sluicegate.pipeline.jobs.profile.cells import HOURS
from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.jobs.repair import job as repairing
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.jobs.verify.job import verify
from sluicegate.pipeline.jobs.violations import job as adding_up
from sluicegate.pipeline.jobs.violations.batches import ViolationTotals
from sluicegate.pipeline.jobs.violations.events import events_from_files
from sluicegate.pipeline.kafka.cluster import TopicTrouble
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source import chunks
from sluicegate.pipeline.source.topics import Topics
from sluicegate.protocol.messages.fetch import LATEST
from tests.broker.eventually import eventually
from tests.pipeline.disturbed import (
    count_executors,
    disturb_once,
    kill_all_executors,
    kill_an_executor,
    kill_an_executor_at_work,
    stage_half_done,
)
from tests.pipeline.events import ship_events
from tests.pipeline.spark_home import HOME
from tests.pipeline.standalone import standalone_cluster

_HOUR_MS = 3_600_000
_EXECUTORS = 2
_OFFSETS_A_BATCH = 100_000
_POLICIES = """
upstream: {{bootstrap: ["{address}"]}}
listen: {{bootstrap: "127.0.0.1:1", broker_port_base: 19100, advertised_host: 127.0.0.1}}
defaults: {{message.timestamp.after.max.ms: 3600000, mode: observe}}
"""


class Jobs:
    """The jobs. Each method runs one job with its results in a folder of its own, and returns figures to compare."""

    def __init__(self, spark: SparkSession, address: str, topic: str, folder: Path, now_ms: int) -> None:
        self._spark, self._address, self._folder = spark, address, folder
        self._topics, self._now = Topics(address, (topic,)), now_ms
        self._rules, self._clean = Rules(now_ms, _HOUR_MS), f"{topic}-clean"
        self._targets = {topic: self._clean}
        self._validated_to = self._end_of(topic)

    def profile(self, name: str) -> Any:
        results = self._results(f"profile-{name}")
        return profile(self._spark, self._topics, results, self._now, _HOUR_MS, None), _rows(results, HOURS)

    def audit(self, name: str) -> Any:
        file, results = self._folder / "policies.yaml", self._results(f"audit-{name}")
        file.write_text(_POLICIES.format(address=self._address))
        config = load(read_file(file), {}).config
        found = audit(self._spark, self._topics, results, config, policies_of(config, {}), self._now, None, 3)
        return found, [_rows(results, what.value) for what in RowKind]

    def plan(self, name: str) -> Any:
        results = self._results(f"repair-{name}")
        plan = repairing.write_plan(self._spark, self._topics, results, self._targets, self._rules)
        listing = repairing.list_changes(self._spark, self._topics, results, plan)
        return plan.as_json(), asdict(listing), _rows(results, repairing.REPAIRS)

    def write(self) -> None:
        """Write a repair in one task, and kill its executor after the first records are written."""
        results = self._results("written")
        plan = repairing.write_plan(self._spark, self._topics, results, self._targets, self._rules)
        listing = repairing.list_changes(self._spark, self._topics, results, plan)
        with disturb_once(self._has_begun, kill_an_executor_at_work):
            repairing.write_clean_topics(self._spark, self._topics, results, plan, listing)

    def verify(self, name: str) -> Any:
        return verify(self._spark, self._topics, self._clean, self._results(f"verify-{name}"), self._now)

    def extract(self, name: str) -> Any:
        """Extract with one task for each batch."""
        results = self._results(f"extract-{name}")
        extracting.run(self._spark, self._topics, results, BuiltInExtractor("skip"), _OFFSETS_A_BATCH)
        rows = self._spark.read.parquet(results.path(extracting.RECORDS))
        sums = rows.select(f.count("*"), f.sum("offset"), f.sum(f.hash("key", "value", "timestamp", "event_time")))
        return extracting.summary_of(self._topics, results), [list(row) for row in sums.collect()]

    def replay(self, name: str) -> Any:
        """Replay the records that an audit lists. Return the number of replayed copies, and of how many records."""
        file, found_in, out = (self._folder / each for each in ("policies.yaml", "listed", f"replay-{name}"))
        file.write_text(_POLICIES.format(address=self._address))
        validated(self._spark, self._address, self._topics.names, found_in, file, samples=None)
        with disturb_once(lambda: self._end_of(self._topics.names[0]) > self._validated_to, kill_an_executor_at_work):
            done = replay(
                *(self._spark, self._address, self._topics.names, out, file),
                fix="unit",
                headers=Headers.ALL,
                findings=found_in,
            )
        copies = self._topics.read(self._spark, "sluicegate").where(f"offset >= {self._validated_to}")
        origins = copies.select(f.explode("headers").alias("header")).where("header.key = 'sluicegate.origin'")
        sums = origins.select(f.count("*"), f.countDistinct("header.value")).first()
        return done.summary["topics"], list(sums or ())

    def watch(self, name: str) -> Any:
        """Watch in several batches. Return the number of records by damage; the test knows the true numbers."""
        topic, out = self._topics.names, self._folder / f"watch-{name}"
        found = watched(self._spark, self._address, topic, out, offsets_a_batch=_OFFSETS_A_BATCH)
        return dict(found.hours.groupBy("damage").agg(f.sum("records")).collect())

    def violations(self, name: str) -> Any:
        """Sum violation events in six batches."""
        results, events = self._results(f"violations-{name}"), self._folder / "events"
        if not events.exists():
            ship_events(events, files=24, a_file=20)
        stream = events_from_files(self._spark, str(events), 4)
        adding_up.run(stream, results, "5 minutes", 600, follow=False, every_seconds=1, after_batch=lambda _: None)
        return adding_up.summary_of(ViolationTotals.of_batches_before(results, None))

    def has_added_up_some(self) -> bool:
        """Return whether the disturbed run of this job has completed a batch."""
        return self._results("violations-disturbed").has("windows/batch=1")

    def has_watched_some(self) -> bool:
        """Return whether the disturbed run of this job has completed a batch."""
        return self._results("watch-disturbed").has("progress/0.json")

    def has_extracted_some(self) -> bool:
        """Return whether the disturbed run of this job has completed a batch."""
        return self._results("extract-disturbed").has("progress/1.json")

    def _has_begun(self) -> bool:
        """Return whether the clean topic has records."""
        return self._end_of(self._clean) > 0

    def _end_of(self, topic: str) -> int:
        """Return the end offset of the topic's only partition, including uncommitted records."""
        cluster = Topics(self._address, (topic,)).cluster()
        try:
            return sum(cluster.offsets(cluster.partitions((topic,)), LATEST, committed=False).values())
        except TopicTrouble:
            return 0  # the topic does not exist yet
        finally:
            cluster.close()

    def _results(self, name: str) -> Results:
        results = Results(self._spark, str(self._folder / name.replace(" ", "-")))
        results.make()
        return results


def _rows(results: Results, table: str) -> list[str]:
    return sorted(map(str, results.read_table(table).collect()))


def main(master: str, address: str, topic: str, folder: str, now_ms: str, *asked: str) -> None:
    """Run the jobs and print a line of JSON for each."""
    os.environ["SPARK_HOME"] = str(HOME)  # executors in local-cluster mode start from this folder
    # Allow chunks of a single block of offsets. Then there are four tasks, and two of them wait for the others.
    with mock.patch.object(chunks, "_BLOCKS_AT_LEAST", 1), _at(master, Path(folder)) as at:
        spark = session("lost executors", at)
        jobs = Jobs(spark, address, topic, Path(folder), int(now_ms))
        middle = stage_half_done(spark)
        ways: dict[str, Callable[[], None]] = {
            "profile": lambda: run_twice("profile", jobs.profile, middle, kill_an_executor),
            "audit": lambda: run_twice("audit", jobs.audit, middle, kill_an_executor),
            "plan": lambda: run_twice("plan", jobs.plan, middle, kill_an_executor),
            "write": jobs.write,
            "verify": lambda: run_twice("verify", jobs.verify, middle, kill_an_executor),
            "watch": lambda: run_job_once("watch", jobs.watch, jobs.has_watched_some, kill_an_executor),
            "replay": lambda: print(json.dumps({"job": "replay", "reported": jobs.replay("disturbed")}), flush=True),
            "extract": lambda: run_twice("extract", jobs.extract, jobs.has_extracted_some, kill_all_executors),
            "violations": lambda: run_twice("violations", jobs.violations, jobs.has_added_up_some, kill_all_executors),
        }

        def run_twice(
            name: str, job: Callable[[str], Any], is_time: Callable[[], bool], kill: Callable[[], None]
        ) -> None:
            run_job_once(name, job, is_time, kill, undisturbed=job("as it is"))

        def run_job_once(
            name: str, job: Callable[[str], Any], is_time: Callable[[], bool], kill: Callable[[], None], **others: Any
        ) -> None:
            eventually(lambda: len(count_executors()) == _EXECUTORS, what="executors")
            with disturb_once(is_time, kill):
                disturbed = job("disturbed")
            output = {"job": name, "disturbed": disturbed} | others
            print(json.dumps(output, default=lambda partitions: sorted(map(str, partitions))), flush=True)
            eventually(
                lambda: len(count_executors()) == _EXECUTORS, what="another executor in the place of the lost one"
            )

        for name in asked:
            ways[name]()
        spark.stop()


def _at(master: str, folder: Path) -> AbstractContextManager[str]:
    return standalone_cluster(folder) if master == "standalone" else nullcontext(master)


if __name__ == "__main__":
    main(*sys.argv[1:])
