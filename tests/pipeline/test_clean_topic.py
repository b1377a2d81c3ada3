"""A clean topic has the source's settings and records, except records that retention deletes meanwhile."""

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.repair import job
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.settings import Retention, retry_until_known
from sluicegate.pipeline.kafka import cluster as cluster_module
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from tests.integration.topics import create_topic
from tests.pipeline.polluted import DAY, HOUR, UNLIMITED
from tests.pipeline.repairs import now_ms, profile_topic, repair_topic, times_in, verify_clean_topic
from tests.wire.batches import NONE, ZSTD, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


def write_batches(bootstrap: str, topic: str, *batches: bytes) -> None:
    with RawClient(bootstrap) as client:
        for data in batches:
            response = client.produce(9, [topic_data(topic, (0, data))])
            assert isinstance(response, dict)
            assert response["responses"][0]["partition_responses"][0]["error_code"] == 0, response


def settings_in(bootstrap: str, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (response,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in response.result(30).items()}


def set_topic_config(bootstrap: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(30)


@pytest.fixture
def month_old_topic(kafka_bootstrap: str) -> str:
    """Return a topic with times in nanoseconds from thirty days ago. A retention of seven days does not delete them,
    because a broker interprets them as far in the future."""
    topic = create_topic(kafka_bootstrap, UNLIMITED | {"retention.ms": str(7 * DAY)}, 1)
    valid = [Rec(now_ms() - HOUR + i, value=b"s%d" % i) for i in range(50)]
    old = [Rec((now_ms() - 30 * DAY + i) * 1_000_000, value=b"o%d" % i) for i in range(80)]
    write_batches(kafka_bootstrap, topic, batch(old), batch(valid))
    return topic


def test_a_clean_topic_deletes_nothing_by_default(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, month_old_topic: str
) -> None:
    done = repair_topic(spark, kafka_bootstrap, month_old_topic, tmp_path)

    found = settings_in(kafka_bootstrap, f"{month_old_topic}-clean")
    assert (found["retention.ms"], found["retention.bytes"], found["cleanup.policy"]) == ("-1", "-1", "delete")
    (warning,) = done["warnings"]
    assert f"{month_old_topic}-clean is created without deletion and compaction" in warning
    assert f"retention.ms={7 * DAY}: set them (that deletes 80 records at once)" in warning
    assert len(times_in(spark, kafka_bootstrap, f"{month_old_topic}-clean")) == 130


def test_the_retention_of_the_source_is_copied_on_request(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, month_old_topic: str
) -> None:
    done = repair_topic(spark, kafka_bootstrap, month_old_topic, tmp_path, retention=Retention.AS_SOURCE)

    assert settings_in(kafka_bootstrap, f"{month_old_topic}-clean")["retention.ms"] == str(7 * DAY)
    (warning,) = done["warnings"]
    assert warning.startswith(
        f"80 records of {month_old_topic}would after their repair be older than its retention.ms={7 * DAY}"
    )


def test_a_repair_to_a_compacted_topic_rejects_records_without_a_key(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    write_batches(kafka_bootstrap, topic, batch([Rec(now_ms(), None), Rec(now_ms(), b"k"), Rec(now_ms(), b"k")]))
    set_topic_config(kafka_bootstrap, topic, "cleanup.policy", "compact")

    with pytest.raises(
        CannotWriteTopic, match=f"{topic}-0: 1 records without a key, .* --retention as-source: omit that"
    ):
        repair_topic(spark, kafka_bootstrap, topic, tmp_path, retention=Retention.AS_SOURCE)
    done = repair_topic(spark, kafka_bootstrap, topic, tmp_path)

    assert done["written_by_this_run"] == 3
    assert verify_clean_topic(spark, kafka_bootstrap, topic, tmp_path / "v")["same"]


def test_repair_writes_record_that_fits_only_when_compressed(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """A compressed record of 6 MB is among uncompressed records; the repair compresses it again."""
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    large = Rec(now_ms(), value=b"x" * 6_000_000)
    write_batches(kafka_bootstrap, topic, batch([Rec(now_ms())] * 50, NONE), batch([large], ZSTD))

    done = repair_topic(spark, kafka_bootstrap, topic, tmp_path / "made")

    assert done["written_by_this_run"] == 51
    assert verify_clean_topic(spark, kafka_bootstrap, topic, tmp_path / "v")["same"]
    clean = create_topic(kafka_bootstrap, UNLIMITED, 1)
    topics, results = Topics(kafka_bootstrap, (topic,)), Results(spark, str(tmp_path / "there"))
    plan = job.write_plan(spark, topics, results, {topic: clean}, Rules(now_ms(), HOUR))
    (obstacle,) = job.list_changes(spark, topics, results, plan).obstacles
    assert obstacle.startswith(
        f"{topic}-0: a record of 6,000,002 bytes, and the limit of {clean} is 1,048,588: set its max.mess"
    )
    set_topic_config(kafka_bootstrap, clean, "max.message.bytes", "6001026")
    listing = job.list_changes(spark, topics, results, plan)
    assert sum(each.records for each in job.write_clean_topics(spark, topics, results, plan, listing)) == 51


def test_repairs_a_topic_with_a_small_max_message_bytes(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED | {"max.message.bytes": "20000"}, 1)
    records = [[Rec(now_ms(), value=b"v" * 1000)] * 15 for _ in range(20)]
    write_batches(kafka_bootstrap, topic, *(batch(some) for some in records))

    assert repair_topic(spark, kafka_bootstrap, topic, tmp_path)["written_by_this_run"] == 300


def delete_before(bootstrap: str, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (done,) = admin.delete_records([ClientPartition(topic, 0, offset)]).values()
    done.result(30)


class DeletingTopics(Topics):
    """Topics of which the first hundred offsets are deleted between the plan and the reading."""

    def ranges(self) -> list[OffsetRange]:
        found = super().ranges()
        delete_before(self.bootstrap, self.names[0], 100)
        return found


@pytest.fixture
def aged_topic(kafka_bootstrap: str) -> str:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    for first in range(0, 300, 50):
        write_batches(kafka_bootstrap, topic, batch([Rec(now_ms() - HOUR + i) for i in range(first, first + 50)]))
    return topic


def test_deletions_during_a_profile_are_reported(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, aged_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.pipeline.repairs.Topics", DeletingTopics)

    found = profile_topic(spark, kafka_bootstrap, aged_topic, tmp_path)

    assert found["records"] == 200
    assert found["missing"] == [{"partition": 0, "missing_from": 0, "missing_to": 99}]


def test_plan_starts_at_log_start_and_reports_later_deletions(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, aged_topic: str
) -> None:
    topics, results = DeletingTopics(kafka_bootstrap, (aged_topic,)), Results(spark, str(tmp_path))
    plan = job.write_plan(spark, topics, results, {aged_topic: f"{aged_topic}-clean"}, Rules(now_ms(), HOUR))
    listing = job.list_changes(spark, topics, results, plan)

    assert [(each.source.start, each.source.end) for each in plan.partitions] == [(100, 300)]
    assert listing.obstacles == []
    delete_before(kafka_bootstrap, aged_topic, 150)
    missing = f"{aged_topic}-0: the plan begins at offset 100, and offsets 100 to 149 were deleted since"
    assert [text.startswith(missing) for text in job.list_changes(spark, topics, results, plan).obstacles] == [True]
    with pytest.raises(CannotWriteTopic, match=f"the plan is outdated: {missing}.*Make a new one, by a dry run"):
        job.write_clean_topics(spark, topics, results, plan, listing)


@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION]
)
def test_retries_while_a_new_topic_is_unknown_or_has_no_leader(code: int) -> None:
    answers = [KafkaException(KafkaError(code))] * 2

    def ask_until_known() -> str:
        if answers:
            raise answers.pop()
        return "known"

    assert retry_until_known(ask_until_known) == "known"


def test_an_unknown_topic_is_requested_again_until_it_exists(
    kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_UNKNOWN_SECONDS", 20.0)
    name = f"late-{time.time_ns()}"
    cluster = Topics(kafka_bootstrap, (name,)).cluster()
    ask_any, asked = cluster._ask_any, []

    def ask_and_create_topic(topics: list[str]) -> object:
        asked.append(topics)
        response = ask_any(topics)
        if len(asked) == 1:
            producer = Producer({"bootstrap.servers": kafka_bootstrap, "allow.auto.create.topics": True})
            producer.produce(name, "v")
            assert producer.flush(30) == 0
        return response

    monkeypatch.setattr(cluster, "_ask_any", ask_and_create_topic)

    assert cluster.partitions([name])
    assert len(asked) > 1
    cluster.close()
