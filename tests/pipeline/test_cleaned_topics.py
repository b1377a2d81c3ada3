"""Jobs read topics with data and markers that the log cleaner has emptied, and find the same records as Kafka's
consumer."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.pipeline.kafka import fetching
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.fetching import stored_batches
from sluicegate.pipeline.source.decoding import BatchDecoder
from sluicegate.pipeline.source.topics import Topics
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD
from tests.pipeline.cleaned_topic import QUICK_CLEANER, CleanedTopic, TransactionEnd, headers_in, records_java_reads
from tests.pipeline.commands import run, summary

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
ORDERS = "orders"
POLICIES = {"upstream": {"bootstrap": ["127.0.0.1:9"]}, "listen": {"bootstrap": "127.0.0.1:9", "broker_port_base": 9}}
LEFT = ["k0 v0", "k1 v1", "k2 v2", "k3 v3", "k4 v4", "k5 w5", "key w"]
FILLERS = 2  # see CleanedTopic.clean


@pytest.fixture(scope="module", params=[KAFKA_NEW, KAFKA_OLD])
def cleaned_topic(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a broker whose topic `orders` was written by eight transactional producers and cleaned twice."""
    for kafka in run_kafka(Kafka(request.param, tmp_path_factory.mktemp("cleaned"), settings=QUICK_CLEANER)):
        topic = CleanedTopic(kafka, ORDERS)
        for number in range(6):
            topic.transaction(number, f"k{number}", f"v{number}", TransactionEnd.COMMIT)
        topic.transaction(6, "k0", "never", TransactionEnd.FENCED)
        topic.java_transaction("j")
        topic.transaction(7, "k1", "nor this", TransactionEnd.ABORT)
        topic.write_plain("k5", "w5")
        topic.write_plain("key", "w", timestamp=time.time_ns())  # the repair corrects this invalid timestamp
        topic.wait_for_cleaner()
        topic.wait_for_cleaner()
        yield kafka


def test_the_log_cleaner_leaves_empty_batches_of_data_and_of_markers_that_java_skips(cleaned_topic: Kafka) -> None:
    emptied = {header.is_control for header in headers_in(cleaned_topic, ORDERS) if header.records == 0}

    assert emptied == {False, True}
    assert [" ".join(record) for record in records_java_reads(cleaned_topic, ORDERS)] == LEFT


@pytest.mark.parametrize("fetched_bytes", [1, 700, 8 << 20], ids=["one batch a fetch", "some", "all at once"])
def test_any_fetch_size_reads_the_same_records_of_a_cleaned_topic(
    cleaned_topic: Kafka, monkeypatch: pytest.MonkeyPatch, fetched_bytes: int
) -> None:
    monkeypatch.setattr(fetching, "_FETCH_BYTES", fetched_bytes)
    topics = Topics(cleaned_topic.bootstrap, (ORDERS,))
    cluster, decoder, found = topics.cluster(), BatchDecoder(), []
    try:
        for batch in stored_batches(cluster, *topics.ranges(), committed=True):
            decoded = decoder.decode(batch)
            assert batch.header is None or batch.header.record_count > 0
            for _, _, key_at, key_size, value_at, value_size, *_ in decoded.columns.T.tolist():
                payload = bytes(decoded.payload)
                found.append(f"{payload[key_at:][:key_size].decode()} {payload[value_at:][:value_size].decode()}")
    finally:
        cluster.close()

    assert [record for record in found if not record.startswith("filler ")] == LEFT
    assert [batch.of for batch in topics.ranges()] == [TopicPartition(ORDERS, 0)]


def test_no_job_reports_a_batch_without_records(cleaned_topic: Kafka, tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(json.dumps(POLICIES))
    common = ("--bootstrap", cleaned_topic.bootstrap, "--topic", ORDERS)
    policies = ("--policies", str(tmp_path / "policies.yaml"))

    run("profile", *common, "--out", str(tmp_path / "profile"))
    run("audit", *common, *policies, "--out", str(tmp_path / "audit"))
    run("watch", *common, *policies, "--once", "--out", str(tmp_path / "watch"))
    run("extract", *common, "--extractor", "wallclock", "--out", str(tmp_path / "extract"))

    profiled, validated, watched, extracted = (
        summary(tmp_path / job)["topics"][ORDERS] for job in ("profile", "audit", "watch", "extract")
    )
    assert profiled["records"] == watched["records"] == extracted["records"] == len(LEFT) + FILLERS
    assert sum(its["batches"] for its in validated["verdicts"].values()) == len(LEFT) + FILLERS
    assert validated["verdicts"]["good"]["records"] == len(LEFT) + FILLERS
    assert validated["findings"] == []
    assert watched["violations"] == {}
    assert {found["about"] for found in summary(tmp_path / "watch")["findings"]} == {"damage"}


def test_a_repair_copies_the_records_that_java_reads(cleaned_topic: Kafka, tmp_path: Path) -> None:
    repaired = str(tmp_path / "repair")
    common = ("--bootstrap", cleaned_topic.bootstrap, "--topic", ORDERS)

    run("repair", *common, "--out", repaired, "--apply")
    message = run(
        "verify", *common, "--topic", f"{ORDERS}-clean", "--plan", repaired, "--out", str(tmp_path / "verify")
    )

    assert "have the same records" in message
    assert [" ".join(record) for record in records_java_reads(cleaned_topic, f"{ORDERS}-clean")] == LEFT
