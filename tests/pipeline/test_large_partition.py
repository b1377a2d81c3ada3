"""For a real broker's large partition, each job has the same result in several tasks as in one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.loading import load
from sluicegate.pipeline.jobs.audit import job as auditing
from sluicegate.pipeline.jobs.audit import partitions as validated_partitions
from sluicegate.pipeline.jobs.audit.findings import RowKind
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.pipeline.jobs.profile import job as profiling
from sluicegate.pipeline.jobs.profile.cells import HOURS
from sluicegate.pipeline.jobs.repair import job as repairing
from sluicegate.pipeline.jobs.repair import listing, survey
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.verify import job as verifying
from sluicegate.pipeline.jobs.verify import records as verified_records
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source import chunks
from sluicegate.pipeline.source.chunks import cut_ranges
from sluicegate.pipeline.source.tasks import tasks_at_most
from sluicegate.pipeline.source.topics import Topics
from tests.integration.topics import create_topic
from tests.pipeline.large_partition import large_partition
from tests.pipeline.polluted import HOUR, UNLIMITED

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
NOW = time.time_ns() // 1_000_000
BATCHES = 50
CUTTING = (profiling, validated_partitions, survey, listing, verified_records)
POLICIES = """
upstream: {{bootstrap: ["{address}"]}}
listen: {{bootstrap: "127.0.0.1:1", broker_port_base: 19100, advertised_host: 127.0.0.1}}
defaults:
  message.timestamp.after.max.ms: 3600000
  {more}
  rehearse: {{message.timestamp.before.max.ms: [3600000]}}
"""


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow chunks of a single block of offsets."""
    monkeypatch.setattr(chunks, "_BLOCKS_AT_LEAST", 1)


@pytest.fixture(scope="module")
def topic(kafka_bootstrap: str) -> str:
    return large_partition(kafka_bootstrap, NOW, BATCHES)


def results_by_number_of_tasks(work: Callable[[], Any]) -> tuple[Any, Any]:
    """Return the results with one task for each partition and with several."""
    with pytest.MonkeyPatch.context() as patch:
        for module in CUTTING:
            patch.setattr(module, "tasks_at_most", lambda _spark: 1)
        in_one = work()
    return in_one, work()


def rows_of(results: Results, table: str) -> list[Any]:
    return sorted(map(str, results.read_table(table).collect()))


def test_a_large_partition_is_cut_into_several_chunks(spark: SparkSession, kafka_bootstrap: str, topic: str) -> None:
    (whole,) = Topics(kafka_bootstrap, (topic,)).ranges()

    (its,) = cut_ranges([whole], tasks_at_most(spark))

    assert whole.size > 250_000
    assert len(its) > 2


def test_profile_has_equal_results_in_one_task_and_in_several(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    results = Results(spark, str(tmp_path))

    def run_job() -> Any:
        summary = profiling.profile(spark, Topics(kafka_bootstrap, (topic,)), results, NOW, HOUR, HOUR)
        return summary, rows_of(results, HOURS)

    in_one, in_several = results_by_number_of_tasks(run_job)

    assert in_several == in_one
    assert in_several[0]["topics"][topic]["damage"]["zero"] > 0
    assert in_several[0]["topics"][topic]["records"] == BATCHES * 5_000 + 2 * 700  # two of four were aborted


@pytest.mark.parametrize("more", ["mode: observe", "fix: {timestamp: previous}"])
def test_audit_has_equal_results_in_one_task_and_in_several(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path, more: str
) -> None:
    """A topic whose fix depends on earlier records is validated in one task, with the same clock."""
    file, results = tmp_path / "policies.yaml", Results(spark, str(tmp_path / "out"))
    file.write_text(POLICIES.format(address=kafka_bootstrap, more=more))
    config = load(read_file(file), {}).config

    def run_job() -> Any:
        asked = Topics(kafka_bootstrap, (topic,)), results, config, policies_of(config, {}), NOW, None, 3
        return auditing.audit(spark, *asked), {what: rows_of(results, what.value) for what in RowKind}

    in_one, in_several = results_by_number_of_tasks(run_job)

    assert in_several == in_one
    assert in_several[0]["samples"]


def test_repair_plan_has_equal_changes_in_one_task_and_in_several(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    topics, targets, rules = Topics(kafka_bootstrap, (topic,)), {topic: f"{topic}-clean"}, Rules(NOW, HOUR)

    def run_job() -> Any:
        results = Results(spark, str(tmp_path))
        plan = repairing.write_plan(spark, topics, results, targets, rules)
        return plan.as_json(), repairing.list_changes(spark, topics, results, plan), rows_of(results, repairing.REPAIRS)

    in_one, in_several = results_by_number_of_tasks(run_job)

    assert in_several == in_one
    assert len(in_several[2]) > 15_000


def test_verify_has_equal_results_in_one_task_and_in_several(
    spark: SparkSession, kafka_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """The target lacks the first batch and has another batch twice, so that all its offsets differ."""
    order = [*range(1, BATCHES), 3]
    other = large_partition(kafka_bootstrap, NOW, BATCHES, create_topic(kafka_bootstrap, UNLIMITED, 1), order=order)

    def run_job(target: str) -> Any:
        results = Results(spark, str(tmp_path))
        summary = verifying.verify(spark, Topics(kafka_bootstrap, (topic,)), target, results, NOW)
        return summary, [] if summary["same"] else rows_of(results, verifying.DIFFERENCES)

    in_one, in_several = results_by_number_of_tasks(lambda: run_job(other))
    itself = run_job(topic)

    assert in_several == in_one
    assert not in_several[0]["same"]
    assert itself[0]["same"]
