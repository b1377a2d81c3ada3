"""Jobs read topics with old segments in remote storage. If a remote read is slow, a broker returns neither records nor
an error."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.verify.job import plan_in, verify
from sluicegate.pipeline.kafka import fetching
from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import DataLoss, EmptyResponses, RemoteRecordsMissing
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.broker.kafka import Kafka
from tests.pipeline.polluted import DAY, HOUR
from tests.pipeline.repairs import now_ms, profile_topic, repair_topic
from tests.pipeline.tiered import plain_topic, tiered_kafka, tiered_topic

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
RECORDS = 4000
MINUTE, YEAR = 60_000, 365 * DAY
OF = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def slow_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a broker that waits 500 ms for a remote read, with a store in which every second read takes longer."""
    kafka = tiered_kafka(tmp_path_factory.mktemp("tiered"), slow_ms=700)
    try:
        yield kafka.start()
    finally:
        kafka.stop()


def true_and_written_times(now: int) -> tuple[list[int], list[int]]:
    """Return the true and the written times. The partition has live records and a backfill of five years ago; some
    times at the start, in the backfill, among the live records and at the end are invalid.
    """
    live = [now - 10 * HOUR + i * 9000 for i in range(RECORDS)]
    meant = list(live)
    meant[1500:2000] = [now - 5 * YEAR + i * 1000 for i in range(500)]
    written = list(meant)
    for i in range(RECORDS):
        if i < 50 or i >= 3400:
            written[i] = meant[i] * 1_000_000
        elif 600 <= i < 700 or 1700 <= i < 1750:
            written[i] = meant[i] // 1000
        elif 900 <= i < 960 or (i % 97 == 5 and i > 2000):
            written[i] = 0
        elif 2500 <= i < 2540:
            written[i] = live[i] + 900 * DAY
    return meant, written


@pytest.mark.parametrize("make", [tiered_topic, plain_topic])
def test_every_record_of_a_damaged_topic_is_accounted_for(
    spark: SparkSession, slow_store: Kafka, tmp_path: Path, make: Callable[[Kafka, list[int]], str]
) -> None:
    meant, written = true_and_written_times(now_ms())
    topic, bootstrap = make(slow_store, written), slow_store.bootstrap

    found = profile_topic(spark, bootstrap, topic, tmp_path / "profile")
    done = repair_topic(spark, bootstrap, topic, tmp_path / "repair")
    plan = plan_in(Results(spark, str(tmp_path / "repair")), topic, f"{topic}-clean")
    topics, results = Topics(bootstrap, (topic,)), Results(spark, str(tmp_path / "verify"))
    same = verify(spark, topics, f"{topic}-clean", results, now_ms(), plan)

    counts = {
        "nanoseconds": sum(time > 10**17 for time in written),
        "seconds": sum(0 < time < 10**10 for time in written),
        "zero": written.count(0),
        "future": sum(now_ms() + HOUR < time < 10**13 for time in written),
    }
    assert found["records"] == RECORDS
    assert {damage: count for damage, count in found["damage"].items() if count} == counts
    assert done["written_by_this_run"] == RECORDS
    assert (done["topics"][topic]["repaired"], done["topics"][topic]["valid_looking"]) == (counts, 0)
    assert (same["same"], same["repairs"]) == (True, counts)
    clean = read_by_a_client(bootstrap, f"{topic}-clean")
    assert sorted(clean) == list(range(RECORDS))
    for i, time in clean.items():
        exact = written[i] > 10**17 or written[i] == meant[i]
        away = 0 if exact else 1000 if 0 < written[i] < 10**10 else 10 * MINUTE
        assert abs(time - meant[i]) <= away, (i, time, meant[i], written[i])


def read_by_a_client(bootstrap: str, topic: str) -> dict[int, int]:
    """Return the timestamp of each record by its number."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.partition.eof": True})
    consumer.assign([ClientPartition(topic, 0, OFFSET_BEGINNING)])
    found: dict[int, int] = {}
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            consumer.close()
            return found
        number = int(message.value())
        assert number not in found
        found[number] = message.timestamp()[1]


class ScriptedLeader(KafkaCluster):
    """A leader with a log whose local and readable parts are given."""

    def __init__(self, readable_to: int, local_start: int) -> None:
        super().__init__([], None)
        self._readable, self._local = readable_to, local_start

    def offsets(self, partitions: object, timestamp: int, committed: bool) -> dict[TopicPartition, int]:
        return {OF: self._readable}

    def local_start(self, partition: TopicPartition) -> int:
        return self._local


def test_empty_response_ends_the_range_only_if_leader_stores_the_offset() -> None:
    compacted = EmptyResponses(ScriptedLeader(readable_to=90, local_start=0), OffsetRange(OF, 0, 90), committed=True)
    remote = EmptyResponses(ScriptedLeader(readable_to=90, local_start=51), OffsetRange(OF, 0, 90), committed=True)
    unsettled = EmptyResponses(ScriptedLeader(readable_to=49, local_start=0), OffsetRange(OF, 0, 90), committed=True)

    assert [compacted.is_range_complete(50, 90) for _ in range(2)] == [False, True]
    assert [remote.is_range_complete(50, 90) for _ in range(5)] == [False] * 5
    assert [unsettled.is_range_complete(50, 90) for _ in range(5)] == [False] * 5


def test_missing_remote_records_end_the_job_with_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_TIMEOUT_SECONDS", 0.0)
    remote = EmptyResponses(ScriptedLeader(readable_to=90, local_start=51), OffsetRange(OF, 0, 90), committed=True)
    cut_off = EmptyResponses(ScriptedLeader(readable_to=49, local_start=0), OffsetRange(OF, 0, 90), committed=True)

    assert not remote.is_range_complete(50, 90)
    with pytest.raises(
        RemoteRecordsMissing, match=r"no records at offset 50.* below 51 .*remote\.fetch\.max\.wait\.ms"
    ):
        remote.is_range_complete(50, 90)
    assert not cut_off.is_range_complete(50, 49)
    with pytest.raises(DataLoss, match="t-0: offsets 50 to 89 are gone"):
        cut_off.is_range_complete(50, 49)
