"""A repair ends when readers see all records that it wrote."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.repair import job
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.verify.job import verify
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing import transactions
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from sluicegate.pipeline.writing.transactions import wait_until_readable
from tests.integration.topics import create_topic
from tests.pipeline.polluted import HOUR, UNLIMITED
from tests.pipeline.repairs import now_ms
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


@pytest.fixture
def short_transaction_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(transactions, "_PAUSE_SECONDS", 0.05)


def test_waits_while_more_records_become_readable(short_transaction_timeout: None) -> None:
    left = [["p"] * n for n in range(40, 0, -1)]

    wait_until_readable(lambda: left.pop(0) if left else [])

    assert left == []


def test_another_clients_open_transaction_in_the_clean_topic_is_reported(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, short_transaction_timeout: None
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    with RawClient(kafka_bootstrap) as client:
        records = [Rec((now_ms() + i) * 1000, b"k", b"%d" % i) for i in range(50)]
        client.produce(9, [topic_data(topic, (0, batch(records)))])
    topics, clean = Topics(kafka_bootstrap, (topic,)), create_topic(kafka_bootstrap, UNLIMITED, 1)
    results, rules = Results(spark, str(tmp_path / "repair")), Rules(now_ms(), HOUR)
    lasting = {"transactional.id": f"stranger-of-{clean}", "transaction.timeout.ms": 600_000}  # for a busy machine
    stranger = Producer({"bootstrap.servers": kafka_bootstrap, **lasting})
    stranger.init_transactions(60)
    stranger.begin_transaction()
    stranger.produce(clean, b"v", partition=0)
    stranger.flush(30)

    plan = job.write_plan(spark, topics, results, {topic: clean}, rules)
    listing = job.list_changes(spark, topics, results, plan)
    with pytest.raises(CannotWriteTopic, match=f"committed, but .* all of 1 partitions: {clean}-0: offsets 0 to "):
        job.write_clean_topics(spark, topics, results, plan, listing)
    stranger.abort_transaction(60)
    kept = job.kept_plan(results, {topic: clean}, rules)
    assert kept is not None
    again = job.write_clean_topics(spark, topics, results, kept, listing)

    assert [each.records for each in again] == [0]
    assert verify(spark, topics, clean, Results(spark, str(tmp_path / "verify")), now_ms())["same"]
