"""Writes the records of one partition exactly once.

Each transaction contains records and their progress in the source, which is a group's committed offset. A killed run
leaves a transaction open. The next run aborts this transaction when it creates its producer, and resumes from the
committed offset.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from confluent_kafka import Consumer, KafkaError, KafkaException

from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.writing.progress import WriteProgress, progress_group, progress_in
from sluicegate.pipeline.writing.record_writer import (
    MOST_BYTES,
    MOST_RECORDS,
    CannotWriteTopic,
    Headers,
    LibrdkafkaWriter,
    Writing,
    librdkafka_writer,
)

_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError._FATAL, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
)
"""Errors that librdkafka raises after another producer started with the same transactional.id."""


@contextmanager
def transactions(of: TopicPartition, writing: Writing) -> Iterator["Transactions"]:
    """Open transactions for a partition's records. An error aborts the open transaction. Raises CannotWriteTopic."""
    failures = _Failures(of, writing)
    with ExitStack() as opened:
        with failures:
            consumer = opened.enter_context(progress_group(writing.group_id, writing.topics.for_librdkafka))
            writer = librdkafka_writer(of, writing, consumer)
        found = Transactions(of, writer, consumer, failures)
        try:
            yield found
        except BaseException:
            found.abort()
            raise


class _Failures:
    """Converts errors of a writer or of the group's consumer to CannotWriteTopic."""

    def __init__(self, of: TopicPartition, writing: Writing) -> None:
        self._of = of
        self._writing = writing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, KafkaException):
            raise CannotWriteTopic(f"{self._of} to {self._writing.into}: {self._why(error)}") from error

    def _why(self, error: KafkaException) -> str:
        reason = error.args[0]
        if reason.code() in _FENCED:
            return (
                f"another run writes with the same transactional.id ({self._writing.group_id}.*) and has taken over; "
                "committed records stay. Wait until that run ends, then run this command again"
            )
        return str(reason.str())


class Transactions:
    """A writer's successive transactions. Every method except `add` and `abort` may raise CannotWriteTopic."""

    def __init__(self, of: TopicPartition, writer: LibrdkafkaWriter, consumer: Consumer, failures: _Failures) -> None:
        self._of = of
        self._writer = writer
        self._consumer = consumer
        self._failures = failures
        self._is_open = False
        self._records = 0
        self._bytes = 0

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """Return the last offset written to each partition."""
        return self._writer.ends

    def before(self) -> WriteProgress | None:
        """Return the progress of earlier runs; None if there is none."""
        with self._failures:
            return progress_in(self._consumer, [self._of]).get(self._of)

    def begin(self) -> None:
        """Begin the next transaction."""
        with self._failures:
            self._writer.begin()
        self._is_open = True
        self._records = self._bytes = 0

    def write(
        self, to: TopicPartition, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers
    ) -> None:
        """Write a record in the open transaction. `timestamp` is in ms."""
        with self._failures:
            self._writer.write(to, key, value, timestamp, headers)

    def add(self, records: int, size: int) -> bool:
        """Add to the numbers of source records and of their bytes. Return whether the transaction is full."""
        self._records += records
        self._bytes += size
        return self._records >= MOST_RECORDS or self._bytes >= MOST_BYTES

    def commit(self, progress: WriteProgress) -> None:
        """Commit the written records and their progress."""
        with self._failures:
            self._writer.commit(progress.committed(self._of))
        self._is_open = False

    def abort(self) -> None:
        """Abort the open transaction, if there is one. If this fails, the broker aborts it after a timeout."""
        if self._is_open:
            self._is_open = False
            with suppress(KafkaException):
                self._writer.abort()


_TIMEOUT_SECONDS = 60.0
_PAUSE_SECONDS = 0.2


def wait_until_readable(open_transactions: Callable[[], list[str]]) -> None:
    """Wait until readers see all committed records.

    A transaction is committed before all of its partitions show it: the coordinator responds when it has stored the
    decision, and informs the partitions afterwards (KIP-98). A comparison before that point would miss records.
    `open_transactions` returns a sentence for each partition with invisible records. Raises CannotWriteTopic after a
    minute without progress.
    """
    fewest, end = None, 0.0
    while waiting := open_transactions():
        if fewest is None or len(waiting) < fewest:
            fewest, end = len(waiting), time.monotonic() + _TIMEOUT_SECONDS
        elif time.monotonic() > end:
            raise CannotWriteTopic(
                f"all records are committed, but after {_TIMEOUT_SECONDS:g} s readers do not see all of "
                f"{len(waiting):,} partitions: {waiting[0]}. If another client has an open transaction, end that "
                f"transaction and start again; no record is written twice"
            )
        time.sleep(_PAUSE_SECONDS)  # Kafka does not announce that the records are visible
