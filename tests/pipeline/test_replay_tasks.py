"""A single task of a replay, run without Spark on a real broker, is repeated, or reads different records than those
that were listed."""

import time
import uuid

import pytest
from confluent_kafka import Producer

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.config.topics import Fix
from sluicegate.pipeline.jobs.replay import letters
from sluicegate.pipeline.jobs.replay.decisions import FunctionFails, Validation
from sluicegate.pipeline.jobs.replay.request import replay_policies
from sluicegate.pipeline.jobs.replay.writing import Headers, ReplayedPartition, ReplayPartition, write_back
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing import transactions
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic, Writing
from tests.integration.topics import create_topic
from tests.pipeline.polluted import UNLIMITED
from tests.pipeline.replays import read_back

RECORDS, STUMBLES_AT = 40, 25


class TableLocation:
    """A partition of dead letters for partition 1 of a topic, with times in nanoseconds."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = create_topic(bootstrap, UNLIMITED, 2)
        self.of = TopicPartition(create_topic(bootstrap, {}, 1, prefix="dead"), 0)
        self.now_ms = time.time_ns() // 1_000_000
        self.values = [b"secret 7" if i == STUMBLES_AT else b"v%d" % i for i in range(RECORDS)]
        self._group = f"replay-{uuid.uuid4().hex}"
        report = {"reason": "timestamp_in_future", "topic": self.topic, "partition": "1", "index": "0"}
        headers = [(f"sluicegate.{name}", text.encode()) for name, text in report.items()]
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        for i, value in enumerate(self.values):
            at = ("sluicegate.timestamp", str((self.now_ms + i) * 1_000_000).encode())
            producer.produce(self.of.topic, value, partition=0, headers=[*headers, at])
        assert producer.flush(120) == 0

    def plan(
        self, plan_id: str = "a", records: int = RECORDS, remaining: frozenset[int] = frozenset()
    ) -> ReplayPartition:
        return ReplayPartition(plan_id, OffsetRange(self.of, 0, RECORDS), records, remaining)

    def write(self, plan: ReplayPartition, by: str | None = None, fix: Fix | None = None) -> list[ReplayedPartition]:
        text = "upstream: {bootstrap: ['kafka:9092']}\nlisten: {bootstrap: '127.0.0.1:19092'}\n"
        text += "defaults: {message.timestamp.after.max.ms: 1h}\n"
        config = load(read_yaml(text, "sluicegate.yaml"), {}).config
        validation = Validation(replay_policies(config, {}, fix), {self.topic: 2}, by, self.now_ms)
        topics = Topics(self.bootstrap, (self.of.topic,))
        writing = Writing(self._group, 1 << 20, "lz4", topics, "where they belong")
        return write_back(plan, validation, Headers.OWN, letters.DeadLetterTopic(topics.options), writing)


@pytest.fixture
def table(kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> TableLocation:
    """Return a partition of dead letters, for which a transaction has at most ten records."""
    monkeypatch.setattr(letters, "_ROWS", 10)
    monkeypatch.setattr(transactions, "MOST_RECORDS", 10)
    return TableLocation(kafka_bootstrap)


UNIT = Fix(timestamp="unit")


def test_a_repeated_task_resumes_after_its_commit(table: TableLocation) -> None:
    with pytest.raises(FunctionFails, match=f"{table.of} offset {STUMBLES_AT} "):
        table.write(table.plan(), by="tests.pipeline.corrections:raise_for_one_record")
    before = read_back(table.bootstrap, table.topic)

    again = table.write(table.plan(), fix=UNIT)

    assert [each.value for each in before] == table.values[:20]
    back = read_back(table.bootstrap, table.topic)
    assert [each.value for each in back] == table.values
    assert [each.timestamp for each in back] == [table.now_ms + i for i in range(RECORDS)]
    assert {each.partition for each in back} == {1}
    assert [(each.to, each.to_partition, each.records) for each in again] == [(table.topic, 1, 20)]
    assert table.write(table.plan(), fix=UNIT) == []


def test_a_replay_task_does_not_write_records_listed_as_remaining(table: TableLocation) -> None:
    remaining = frozenset({0, 9, 10, 39})

    table.write(table.plan(remaining=remaining), fix=UNIT)

    expected = [value for i, value in enumerate(table.values) if i not in remaining]
    assert [each.value for each in read_back(table.bootstrap, table.topic)] == expected


def test_offsets_that_another_replay_has_handled_are_not_repeated(table: TableLocation) -> None:
    table.write(table.plan("a"), fix=UNIT)

    with pytest.raises(CannotWriteTopic, match=f"{table.of}: another replay has continued in the meantime"):
        table.write(table.plan("b"), fix=UNIT)

    assert len(read_back(table.bootstrap, table.topic)) == RECORDS


def test_record_that_became_invalid_after_listing_is_not_written(table: TableLocation) -> None:
    with pytest.raises(
        CannotWriteTopic, match=f"{table.of} offset 0: the record was valid when it was listed, and is no longer: "
    ):
        table.write(table.plan())

    assert read_back(table.bootstrap, table.topic) == []


@pytest.mark.parametrize("away", [1, -1])
def test_rejects_partition_that_differs_from_the_list(table: TableLocation, away: int) -> None:
    with pytest.raises(CannotWriteTopic, match=f"{RECORDS + away} records were listed, and {RECORDS} were read now"):
        table.write(table.plan(records=RECORDS + away), fix=UNIT)

    table.write(table.plan(), fix=UNIT)

    assert [each.value for each in read_back(table.bootstrap, table.topic)] == table.values
