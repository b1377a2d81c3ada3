"""A partition's records are written in transactions, on a real broker and without Spark."""

from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from sluicegate.pipeline.kafka.cluster import TopicPartition, TopicUnknown
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.progress import WriteProgress
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic, Headers, LibrdkafkaWriter, Writing
from sluicegate.pipeline.writing.transactions import Transactions, transactions
from tests.integration.topics import create_topic
from tests.pipeline.polluted import UNLIMITED
from tests.pipeline.replays import ConsumedRecord, read_back

H: Headers = [(b"h", b"1"), ("é".encode(), None)]
MOMENT = 1_790_000_000_000


class TransactionTopics:
    """A source partition, a target topic of two partitions, and the writer."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.of = TopicPartition(create_topic(bootstrap, {}, 1), 0)
        self.topic = create_topic(bootstrap, UNLIMITED, 2)
        self.to = TopicPartition(self.topic, 0)

    def writing(self) -> Writing:
        topics = Topics(self.bootstrap, (self.of.topic,))
        return Writing(f"writers-{self.topic}", 1 << 20, "lz4", topics, self.topic)

    def read_back_records(self) -> list[ConsumedRecord]:
        return read_back(self.bootstrap, self.topic)


@pytest.fixture
def transaction_topics(kafka_bootstrap: str) -> TransactionTopics:
    return TransactionTopics(kafka_bootstrap)


class WritingInterrupted(Exception):
    """An interruption while records are written."""


def write_records(target: Transactions, to: TopicPartition, *values: bytes) -> None:
    for value in values:
        target.write(to, b"k", value, MOMENT, H)


def test_a_writer_resumes_after_the_last_committed_transaction(transaction_topics: TransactionTopics) -> None:
    other = TopicPartition(transaction_topics.topic, 1)
    with pytest.raises(WritingInterrupted), transactions(transaction_topics.of, transaction_topics.writing()) as target:
        assert target.before() is None
        target.begin()
        write_records(target, transaction_topics.to, b"a", b"b")
        target.write(other, None, None, MOMENT, [])
        target.commit(WriteProgress(7, 3, "plan"))
        assert target.ends == {transaction_topics.to: 1, other: 0}
        target.begin()
        write_records(target, transaction_topics.to, b"aborted", *([b"x" * 700_000] * 3))
        raise WritingInterrupted

    with transactions(transaction_topics.of, transaction_topics.writing()) as target:
        assert target.before() == WriteProgress(7, 3, "plan")
        target.begin()
        write_records(target, transaction_topics.to, b"c")
        target.commit(WriteProgress(9, 4, "plan"))
        target.begin()
        target.commit(WriteProgress(10, 4, "plan"))
        assert target.before() == WriteProgress(10, 4, "plan")

    headers = [(name.decode(), value) for name, value in H]
    assert transaction_topics.read_back_records() == [
        *(ConsumedRecord(0, MOMENT, b"k", value, headers) for value in (b"a", b"b", b"c")),
        ConsumedRecord(1, MOMENT, None, None, []),
    ]


@pytest.mark.parametrize("moment", ["before the first response", "after it", "in the middle", "before the commit"])
def test_a_run_fails_when_another_takes_over_its_transactional_id(
    transaction_topics: TransactionTopics, moment: str
) -> None:
    writing = transaction_topics.writing()

    def write_until_taken_over() -> None:
        with transactions(transaction_topics.of, writing) as first:
            first.begin()
            if moment != "before the commit":
                write_records(first, transaction_topics.to, b"a")
            if moment == "after it":
                first._writer._producer.flush(30)
            other = {"bootstrap.servers": transaction_topics.bootstrap, "transactional.id": f"{writing.group_id}.0"}
            Producer(other).init_transactions(60)
            if moment == "in the middle":
                write_records(first, transaction_topics.to, b"b")
            first.commit(WriteProgress(1, 1, "plan"))

    expected = (
        f"{transaction_topics.of} to {transaction_topics.topic}: another run writes with the same transactional.id"
    )
    with pytest.raises(CannotWriteTopic, match=expected):
        write_until_taken_over()

    assert transaction_topics.read_back_records() == []


class ForgetfulProducer:
    """Reports a fenced producer for a record, then fails as confluent-kafka 2.16.1 once did with Spark 4.1.4."""

    def produce(self, *arguments: Any, **_: Any) -> None:
        self._delivered = arguments[4]

    def flush(self, _timeout: float) -> None:
        self._delivered(KafkaError(KafkaError.INVALID_PRODUCER_EPOCH), None)
        raise SystemError("<method 'flush' of 'cimpl.Producer' objects> returned NULL without setting an exception")


def test_fatal_error_lost_by_the_client_is_taken_from_the_first_record(
    transaction_topics: TransactionTopics,
) -> None:
    consumer = Consumer({"bootstrap.servers": transaction_topics.bootstrap, "group.id": transaction_topics.topic})
    writer = LibrdkafkaWriter(cast("Producer", ForgetfulProducer()), consumer)
    writer.write(transaction_topics.to, b"k", b"v", MOMENT, H)

    with pytest.raises(KafkaException, match="INVALID_PRODUCER_EPOCH"):
        writer.commit(WriteProgress(1, 1, "plan").committed(transaction_topics.of))

    consumer.close()


@pytest.mark.parametrize("name", [b"\xff", b"a\0b"])
def test_a_record_that_librdkafka_would_change_is_an_error(transaction_topics: TransactionTopics, name: bytes) -> None:
    def write_unwritable_record(timestamp: int, headers: Headers) -> None:
        with transactions(transaction_topics.of, transaction_topics.writing()) as target:
            target.begin()
            target.write(transaction_topics.to, b"k", b"v", timestamp, headers)

    with pytest.raises(
        CannotWriteTopic, match=f"a record for {transaction_topics.to}: client libraries cannot write a header name"
    ):
        write_unwritable_record(MOMENT, [(name, b"1")])
    with pytest.raises(CannotWriteTopic, match="client libraries cannot write a timestamp of 0"):
        write_unwritable_record(0, [])


def test_records_that_no_broker_stores_are_not_committed(transaction_topics: TransactionTopics) -> None:
    missing = TopicPartition(transaction_topics.topic, 2)

    def write_to_missing_partition() -> None:
        with transactions(transaction_topics.of, transaction_topics.writing()) as target:
            target.begin()
            write_records(target, transaction_topics.to, b"v")
            write_records(target, missing, b"v")
            target.commit(WriteProgress(1, 1, "plan"))

    with pytest.raises(CannotWriteTopic, match=f"{transaction_topics.of} to {transaction_topics.topic}: "):
        write_to_missing_partition()

    with transactions(transaction_topics.of, transaction_topics.writing()) as target:
        assert target.before() is None
    assert transaction_topics.read_back_records() == []


def test_a_read_error_in_a_transaction_is_not_reported_as_a_write_error(transaction_topics: TransactionTopics) -> None:
    with pytest.raises(TopicUnknown), transactions(transaction_topics.of, transaction_topics.writing()) as target:
        target.begin()
        raise TopicUnknown("the source was deleted")
