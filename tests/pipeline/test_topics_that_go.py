"""Jobs report topics that are deleted or created again while they read them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.pipeline import audit, plan_repair, plan_replay, profile, repair, verify, watch
from sluicegate.pipeline.commands.running import message_of_failed_task
from sluicegate.pipeline.jobs.watch.job import OFFSETS_A_BATCH, Watch, WatchSubject
from sluicegate.pipeline.jobs.watch.outcome import watch_in
from sluicegate.pipeline.jobs.watch.reading import WatchBounds
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import format_named, table_location
from sluicegate.pipeline.source.topic_ids import TopicRecreated
from sluicegate.pipeline.source.topics import Topics
from sluicegate.protocol.errors import ErrorCode
from tests.broker.eventually import eventually
from tests.integration.topics import create_topic
from tests.pipeline.polluted import HOUR, UNLIMITED
from tests.pipeline.repairs import now_ms
from tests.pipeline.test_watch import new_findings, stored_counts
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


def write_records(bootstrap: str, topic: str, records: int, unit: int = 1, partition: int = 0) -> None:
    """Write records with the current time multiplied by `unit`."""
    times = [(now_ms() + i) * unit for i in range(records)]
    data = topic_data(topic, (partition, batch([Rec(t, b"k", b"v") for t in times])))

    def is_stored() -> bool:
        with RawClient(bootstrap.split(",", maxsplit=1)[0]) as client:
            response: Any = client.produce(9, [data])
        code = response["responses"][0]["partition_responses"][0]["error_code"]
        assert code in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER), response  # the topic was just created
        return bool(code == ErrorCode.NONE)

    eventually(is_stored, 60, f"a leader of {topic}-{partition}")


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics([topic]).values():
        future.result(30)

    def is_gone() -> bool:
        return topic not in admin.list_topics(timeout=30).topics

    eventually(is_gone, 60, f"the end of {topic}")


def recreate_topic(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def is_made() -> bool:
        try:
            for future in admin.create_topics([NewTopic(topic, partitions, 1, config=UNLIMITED)]).values():
                future.result(30)
        except KafkaException as error:  # the old topic is still being deleted
            assert error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            return False
        return True

    eventually(is_made, 60, f"{topic} made again")
    eventually(lambda: len(Topics(bootstrap, (topic,)).partitions()) == partitions, 60, "its partitions")


def watch_in_background(spark: SparkSession, bootstrap: str, out: Path, *topics: str) -> Watch:
    asked = WatchSubject(Topics(bootstrap, topics), WatchBounds(HOUR, None, None), None, HOUR, OFFSETS_A_BATCH)
    results = Results(spark, str(out))
    results.make()
    found, _ = watch_in(spark, asked, results, table_location(str(out), format_named("parquet")), None)
    return found


def run_all_batches(found: Watch) -> int:
    """Read everything that exists now and return the number of batches."""
    count = 0
    while found.batch() is not None:
        count += 1
    return count


def test_a_watch_continues_without_a_topic_that_is_deleted_and_resumes_it_when_it_is_recreated(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    stays, goes = (create_topic(kafka_bootstrap, UNLIMITED, 1) for _ in range(2))
    found = watch_in_background(spark, kafka_bootstrap, tmp_path, stays, goes)
    for topic in (stays, goes):
        write_records(kafka_bootstrap, topic, 30)
    assert run_all_batches(found) == 1
    assert found.take_notices() == []

    delete_topic(kafka_bootstrap, goes)
    write_records(kafka_bootstrap, stays, 10)
    assert run_all_batches(found) == 1

    was = f"{goes} was deleted: its counts are kept, and it is watched again if it is recreated"
    assert found.take_notices() == [was]
    assert found.summary()["deleted"] == [goes]
    assert run_all_batches(found) == 0
    assert found.take_notices() == []
    recreate_topic(kafka_bootstrap, goes)
    write_records(kafka_bootstrap, goes, 40, unit=1000)
    assert run_all_batches(found) == 1

    again = f"{goes} was recreated (its topic id changed): it is read from the beginning"
    assert found.take_notices() == [again]
    assert found.summary()["deleted"] == []
    assert stored_counts(spark, tmp_path, "topic") == {stays: 40, goes: 70}
    assert stored_counts(spark, tmp_path) == {"none": 70, "microseconds": 40}


def test_progress_of_a_topic_that_was_recreated_between_two_runs_does_not_apply(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 3)
    for partition in range(3):
        write_records(kafka_bootstrap, topic, 30, unit=1000, partition=partition)
    assert new_findings(watch(spark, kafka_bootstrap, topic, tmp_path)) == [("damage", "began", "microseconds", "")]
    delete_topic(kafka_bootstrap, topic)
    recreate_topic(kafka_bootstrap, topic, partitions=1)
    write_records(
        kafka_bootstrap, topic, 50, unit=1000
    )  # more records than the old topic had, so offsets alone look valid

    found = watch(spark, kafka_bootstrap, topic, tmp_path)

    assert new_findings(found) == [("damage", "began", "microseconds", "")]
    assert found.warnings == (f"{topic} was recreated (its topic id changed): it is read from the beginning",)
    assert stored_counts(spark, tmp_path) == {"microseconds": 140}
    assert found.summary["topics"][topic]["records"] == 140


@pytest.mark.parametrize("becomes", ["deleted", "recreated"])
def test_a_watch_reports_a_topic_that_is_deleted_between_planning_and_reading(
    becomes: str, spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, goes = (create_topic(kafka_bootstrap, UNLIMITED, 1) for _ in range(2))
    for topic in (stays, goes):
        write_records(kafka_bootstrap, topic, 30)
    found, read = watch_in_background(spark, kafka_bootstrap, tmp_path, stays, goes), Watch._read

    def read_late(self: Watch, chunks: Any) -> Any:
        monkeypatch.setattr(Watch, "_read", read)
        delete_topic(kafka_bootstrap, goes)
        if becomes == "recreated":
            recreate_topic(kafka_bootstrap, goes)
            write_records(kafka_bootstrap, goes, 50, unit=1000)
        return read(self, chunks)

    monkeypatch.setattr(Watch, "_read", read_late)
    assert run_all_batches(found) == 1

    if becomes == "recreated":
        assert stored_counts(spark, tmp_path) == {"none": 30, "microseconds": 50}
    else:
        assert stored_counts(spark, tmp_path, "topic") == {stays: 30}
    (notice,) = found.take_notices()
    assert notice.startswith(f"{goes} was {becomes}")


def test_watch_waits_for_deleted_topics_and_reads_added_partitions(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    found = watch_in_background(spark, kafka_bootstrap, tmp_path, topic)
    delete_topic(kafka_bootstrap, topic)

    assert run_all_batches(found) == 0
    assert len(found.take_notices()) == 1
    recreate_topic(kafka_bootstrap, topic, partitions=2)
    write_records(kafka_bootstrap, topic, 10, partition=1)
    assert run_all_batches(found) == 1
    assert stored_counts(spark, tmp_path, "partition") == {1: 10}


def _deleted_after_planning(bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = Topics.ranges

    def plan_and_delete(self: Topics) -> list[OffsetRange]:
        found = ranges(self)
        if topic in self.names:
            monkeypatch.setattr(Topics, "ranges", ranges)
            delete_topic(bootstrap, topic)
        return found

    monkeypatch.setattr(Topics, "ranges", plan_and_delete)


@pytest.mark.parametrize("job", ["profile", "audit", "verify"])
def test_topic_deletion_while_a_job_reads_is_reported_in_one_line(
    job: str, spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, other = (create_topic(kafka_bootstrap, UNLIMITED, 1) for _ in range(2))
    policies = tmp_path / "sluicegate.yaml"
    policies.write_text(
        f"upstream: {{bootstrap: ['{kafka_bootstrap}'], topic_settings: false}}\nlisten: {{bootstrap: '127.0.0.1:1'}}\n"
    )
    for name in (topic, other):
        write_records(kafka_bootstrap, name, 30)
    jobs: dict[str, Callable[[], Any]] = {
        "profile": lambda: profile(spark, kafka_bootstrap, topic, tmp_path),
        "audit": lambda: audit(spark, kafka_bootstrap, topic, tmp_path, policies),
        "verify": lambda: verify(spark, kafka_bootstrap, topic, other, tmp_path),
    }
    _deleted_after_planning(kafka_bootstrap, topic, monkeypatch)

    with pytest.raises(PySparkException) as raised:
        jobs[job]()

    assert message_of_failed_task(str(raised.value)) == f"there is no topic {topic!r} on this cluster"


def test_a_plan_and_an_audit_do_not_apply_to_a_topic_that_was_recreated_with_as_many_records(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    policies = tmp_path / "sluicegate.yaml"
    policies.write_text(
        f"upstream: {{bootstrap: ['{kafka_bootstrap}'], topic_settings: false}}\nlisten: {{bootstrap: '127.0.0.1:1'}}\n"
        "defaults: {message.timestamp.after.max.ms: 3600000}\n"
    )
    write_records(kafka_bootstrap, topic, 30, unit=1000)
    plan_repair(spark, kafka_bootstrap, topic, tmp_path / "repair")
    audit(spark, kafka_bootstrap, topic, tmp_path / "audit", policies, samples=None)
    delete_topic(kafka_bootstrap, topic)
    recreate_topic(kafka_bootstrap, topic)
    write_records(kafka_bootstrap, topic, 30, unit=1000)

    with pytest.raises(
        TopicRecreated,
        match=rf"{topic} \(its id was \w+, and is \w+\). Make a new plan "
        rf"with a dry run",
    ):
        repair(spark, kafka_bootstrap, topic, tmp_path / "repair")
    with pytest.raises(TopicRecreated, match=rf"{topic} \(its id was \w+, and is \w+\). Audit them again"):
        plan_replay(
            spark, kafka_bootstrap, topic, tmp_path / "replay", policies, fix="unit", findings=tmp_path / "audit"
        )
