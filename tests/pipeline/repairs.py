"""Runs a repair's jobs in the Spark session of the tests, which avoids starting a process for each job."""

import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.jobs.repair import job
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.verify.job import verify
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.pipeline.polluted import HOUR


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def profile_topic(spark: SparkSession, bootstrap: str, topic: str, out: Path, **more: Any) -> dict[str, Any]:
    """Return the summary of a profile about one topic."""
    found = profile(spark, Topics(bootstrap, (topic,)), Results(spark, str(out)), now_ms(), HOUR, None, **more)
    topics: dict[str, Any] = found["topics"][topic]
    return topics


def repair_topic(spark: SparkSession, bootstrap: str, topic: str, out: Path, **rules: Any) -> dict[str, Any]:
    """Apply a repair and return its summary with the plan; the clean topic has its default name."""
    topics, results = Topics(bootstrap, (topic,)), Results(spark, str(out))
    targets = {topic: f"{topic}-clean"}
    plan = job.write_plan(spark, topics, results, targets, Rules(now_ms(), HOUR, **rules))
    listing = job.list_changes(spark, topics, results, plan)
    return job.summary_of(plan, listing, job.write_clean_topics(spark, topics, results, plan, listing), {})


def times_in(spark: SparkSession, bootstrap: str, topic: str) -> dict[bytes, int]:
    """Return the timestamp of each record by the record's value."""
    rows = Topics(bootstrap, (topic,)).read(spark, "sluicegate", columns="value,timestamp").collect()
    return {bytes(row["value"]): row["timestamp"] for row in rows}


def verify_clean_topic(spark: SparkSession, bootstrap: str, topic: str, out: Path) -> dict[str, Any]:
    """Compare a topic with its clean topic and return the summary."""
    return verify(spark, Topics(bootstrap, (topic,)), f"{topic}-clean", Results(spark, str(out)), now_ms())
