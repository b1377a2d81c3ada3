"""The jobs, as functions and as commands, report the known invalid timestamps in topics."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline import Audit, Profile, Repair, Verification, audit, plan_repair, profile, repair, verify
from sluicegate.pipeline.kafka.cluster import TopicTrouble
from sluicegate.pipeline.runs.argument_checks import BadParameter
from tests.integration.topics import create_topic
from tests.pipeline.commands import run, summary
from tests.pipeline.polluted import DAY, HOUR, RECORDS, UNLIMITED, PollutedTopic, Polluter
from tests.pipeline.repairs import now_ms, repair_topic

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
MOMENTS = {"read_at_ms", "epoch_ms"}
"""The fields of a summary that depend on the time of the job."""


@pytest.fixture(scope="module")
def polluted_topic(kafka_bootstrap: str) -> PollutedTopic:
    return Polluter(kafka_bootstrap, now_ms(), partitions=2).write(batches=60, span_ms=5 * HOUR)


@pytest.fixture(scope="module")
def repaired_topic(
    spark: SparkSession, kafka_bootstrap: str, polluted_topic: PollutedTopic, tmp_path_factory: Any
) -> Path:
    """Return the results folder of an applied repair."""
    folder: Path = tmp_path_factory.mktemp("repair")
    repair_topic(spark, kafka_bootstrap, polluted_topic.topic, folder)
    return folder


def without_moments(reported: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in json.loads(json.dumps(reported)).items() if key not in MOMENTS}


def sorted_rows(frame: Any) -> list[Row]:
    return sorted(frame.collect(), key=str)


def test_profile_as_a_function_and_as_a_command_have_equal_results(
    spark: SparkSession, kafka_bootstrap: str, polluted_topic: PollutedTopic, tmp_path: Path
) -> None:
    found = profile(spark, kafka_bootstrap, polluted_topic.topic, tmp_path / "ours", before_max_ms=DAY)
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluted_topic.topic, "--before-max-ms", str(DAY))
    run("profile", *about, "--out", str(tmp_path / "theirs"))

    assert isinstance(found, Profile)
    assert found.warnings == ()
    damage = found.summary["topics"][polluted_topic.topic]["damage"]
    assert {kind: count for kind, count in damage.items() if count} == polluted_topic.counts
    assert without_moments(found.summary) == without_moments(summary(tmp_path / "theirs"))
    assert summary(tmp_path / "ours") == json.loads(json.dumps(found.summary))
    assert sorted_rows(found.hours) == sorted_rows(spark.read.parquet(str(tmp_path / "theirs" / "hours")))
    assert (tmp_path / "ours" / "report.html").exists()


def test_audit_as_a_function_and_as_a_command_have_equal_results(
    spark: SparkSession, kafka_bootstrap: str, polluted_topic: PollutedTopic, tmp_path: Path
) -> None:
    policies, at = tmp_path / "sluicegate.yaml", now_ms()
    bounds = {"message.timestamp.before.max.ms": 7 * DAY, "message.timestamp.after.max.ms": HOUR}
    config = {
        "upstream": {"bootstrap": [kafka_bootstrap], "topic_settings": False},
        "listen": {"bootstrap": "127.0.0.1:19092"},
        "defaults": bounds,
    }
    policies.write_text(yaml.safe_dump(config))

    found = audit(spark, kafka_bootstrap, [polluted_topic.topic], tmp_path / "ours", policies, as_of_ms=at)
    about = (
        "--bootstrap",
        kafka_bootstrap,
        "--topic",
        polluted_topic.topic,
        "--policies",
        str(policies),
        "--as-of",
        str(at),
    )
    run("audit", *about, "--out", str(tmp_path / "theirs"))

    assert isinstance(found, Audit)
    rejected = found.summary["topics"][polluted_topic.topic]["verdicts"]["reject"]
    assert rejected["bad_records"] == sum(polluted_topic.counts.values())
    assert without_moments(found.summary) == without_moments(summary(tmp_path / "theirs"))
    for name in ("batches", "findings", "rehearsed", "samples", "missing"):
        assert sorted_rows(getattr(found, name)) == sorted_rows(spark.read.parquet(str(tmp_path / "theirs" / name))), (
            name
        )
    reported = found.findings.agg(f.sum("batches"), f.sum("bad_records")).first()
    assert reported == (sum(polluted_topic.counts.values()) // RECORDS, sum(polluted_topic.counts.values()))


def test_function_and_command_make_equal_repair_plans_and_function_writes_plan(
    spark: SparkSession, kafka_bootstrap: str, polluted_topic: PollutedTopic, tmp_path: Path
) -> None:
    damaged, to = sum(polluted_topic.counts.values()), "{topic}-mended"
    proposal = plan_repair(spark, kafka_bootstrap, polluted_topic.topic, tmp_path / "ours", to=to)
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluted_topic.topic, "--to", to)
    run("repair", *about, "--out", str(tmp_path / "theirs"))

    assert isinstance(proposal, Repair)
    assert (proposal.obstacles, proposal.warnings) == ((), ())
    assert json.loads(json.dumps(proposal.summary)) == summary(tmp_path / "theirs")
    assert sorted_rows(proposal.repairs) == sorted_rows(spark.read.parquet(str(tmp_path / "theirs" / "repairs")))
    assert proposal.repairs.where("solved").count() + proposal.undiagnosed.count() == damaged
    plan = json.loads((tmp_path / "ours" / "plan.json").read_text())

    done = repair(spark, kafka_bootstrap, polluted_topic.topic, tmp_path / "ours", to=to)

    assert (done.summary["applied"], done.summary["written_by_this_run"]) == (True, polluted_topic.records)
    assert json.loads((tmp_path / "ours" / "plan.json").read_text()) == plan | {"begun": True}
    mended = to.replace("{topic}", polluted_topic.topic)
    same = verify(spark, kafka_bootstrap, polluted_topic.topic, mended, tmp_path / "verify", plan=tmp_path / "ours")
    assert (same.is_same, sum(same.summary["repairs"].values())) == (True, done.repairs.where("solved").count())


def test_verify_as_a_function_and_as_a_command_have_equal_results(
    spark: SparkSession, kafka_bootstrap: str, polluted_topic: PollutedTopic, repaired_topic: Path, tmp_path: Path
) -> None:
    topics = (polluted_topic.topic, f"{polluted_topic.topic}-clean")

    same = verify(spark, kafka_bootstrap, *topics, tmp_path / "ours", plan=repaired_topic)
    named = ("--topic", topics[0], "--topic", topics[1])
    reported = ("--out", str(tmp_path / "theirs"), "--plan", str(repaired_topic))
    run("verify", "--bootstrap", kafka_bootstrap, *named, *reported)

    assert isinstance(same, Verification)
    assert (same.is_same, same.differences, same.warnings) == (True, None, ())
    assert sum(same.summary["repairs"].values()) == sum(polluted_topic.counts.values())
    assert json.loads(json.dumps(same.summary)) == summary(tmp_path / "theirs")


def test_verify_removes_the_table_of_differences_if_there_are_none(
    spark: SparkSession, kafka_bootstrap: str, polluted_topic: PollutedTopic, repaired_topic: Path, tmp_path: Path
) -> None:
    nothing = create_topic(kafka_bootstrap, UNLIMITED, 2)

    other = verify(spark, kafka_bootstrap, polluted_topic.topic, nothing, tmp_path)

    assert not other.is_same
    assert other.differences is not None
    counts = {row["what"]: row["count"] for row in other.differences.groupBy("what").count().collect()}
    assert counts == {"missing": polluted_topic.records}
    same = verify(
        spark, kafka_bootstrap, polluted_topic.topic, f"{polluted_topic.topic}-clean", tmp_path, plan=repaired_topic
    )
    assert (same.is_same, same.differences) == (True, None)


def test_invalid_arguments_are_reported_before_any_work_begins(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    with pytest.raises(TopicTrouble, match="there is no topic 'nosuch' on this cluster"):
        profile(spark, kafka_bootstrap, "nosuch", tmp_path / "out")
    with pytest.raises(BadParameter, match=r"bootstrap: expected host:port of one or more brokers.*, found 'nowhere'"):
        profile(spark, "nowhere", "t", tmp_path / "out")
    with pytest.raises(BadParameter, match="target: expected another topic than source, found 't' for both"):
        verify(spark, kafka_bootstrap, "t", "t", tmp_path / "out")
    with pytest.raises(BadParameter, match="keep: expected some of seconds, microseconds, nanoseconds"):
        plan_repair(spark, kafka_bootstrap, "t", tmp_path / "out", keep=["nanos"])
    assert not (tmp_path / "out").exists()


def test_results_are_immutable(spark: SparkSession) -> None:
    found = Profile({}, spark.range(1), ())

    with pytest.raises(FrozenInstanceError):
        found.summary = {}


def test_package_import_needs_no_spark_and_submodules_do_not_hide_functions() -> None:
    program = (
        "import sys\n"
        "import sluicegate.pipeline\n"
        "assert not {'pyspark', 'pandas', 'confluent_kafka'} & sys.modules.keys()\n"
        "import sluicegate.pipeline.jobs.profile.job, sluicegate.pipeline.jobs.verify.command\n"
        "from sluicegate.pipeline import audit, profile, verify\n"
        "from sluicegate.pipeline.jobs.profile import report\n"
        "print(audit.__module__, profile.__module__, verify.__module__, report.__name__)\n"
        "for name in sluicegate.pipeline.__all__: assert name in dir(sluicegate.pipeline), name\n"
        "from sluicegate.pipeline import *\n"
        "print(callable(with_event_time) and callable(diagnose))\n"
    )

    reported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    jobs = "sluicegate.pipeline.api"
    assert (reported.stderr, reported.stdout.split()) == (
        "",
        [jobs, jobs, jobs, "sluicegate.pipeline.jobs.profile.report", "True"],
    )
