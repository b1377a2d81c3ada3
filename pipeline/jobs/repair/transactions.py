"""Records of one partition, written elsewhere exactly once.

Each transaction has some records and, as a group's committed offset, how far in the source they reach. A run that is
killed leaves a transaction open. The next run aborts it when it makes its producer, and resumes from the committed
offset. There are two writers, which share the transactional id and the group: librdkafka, and an exact one for records
that librdkafka does not take.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from confluent_kafka import Consumer, KafkaError, KafkaException

from sluicegate.pipeline.jobs.repair.progress import Progress, group, progress_in
from sluicegate.pipeline.jobs.repair.record_writers import (
    MOST_BYTES,
    MOST_RECORDS,
    CannotWrite,
    Headers,
    RecordWriter,
    Writing,
    exact_writer,
    librdkafka_writer,
)
from sluicegate.pipeline.kafka.cluster import TopicPartition, TopicTrouble
from sluicegate.pipeline.kafka.connection import BrokerUnreachable
from sluicegate.pipeline.kafka.transactional_producer import ProducerFenced

_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError._FATAL, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
)
"""What librdkafka raises after another producer has begun with the same transactional.id."""


_FAILURES = (KafkaException, TopicTrouble, BrokerUnreachable)


@contextmanager
def transactions(of: TopicPartition, writing: Writing) -> Iterator["Transactions"]:
    """For the records of a partition. If something is raised, the open transaction is aborted. Raises CannotWrite."""
    failures = _Failures(of, writing)
    with ExitStack() as opened:
        with failures:
            consumer = opened.enter_context(group(writing.group_id, writing.topics.for_librdkafka))
            made: AbstractContextManager[RecordWriter] = (
                exact_writer(of, writing) if writing.is_exact else librdkafka_writer(of, writing, consumer)
            )
            writer = opened.enter_context(made)
        found = Transactions(of, writer, consumer, failures)
        try:
            yield found
        except BaseException:
            found.abort()
            raise


class _Failures:
    """Raises CannotWrite in the place of what a writer or the group's consumer raises within it."""

    def __init__(self, of: TopicPartition, writing: Writing) -> None:
        self._of = of
        self._writing = writing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, _FAILURES):
            raise CannotWrite(f"{self._of} to {self._writing.into}: {self._why(error)}") from error

    def _why(self, error: Exception) -> str:
        reason = error.args[0] if isinstance(error, KafkaException) else None
        if isinstance(error, ProducerFenced) or (reason is not None and reason.code() in _FENCED):
            return (
                f"another run writes with the same transactional.id ({self._writing.group_id}.*) and has taken over; "
                "what this one committed stays. Wait until that run has ended, then give this command again"
            )
        return str(error if reason is None else reason.str())


class Transactions:
    """One after the other, by one writer. Every method but `add` and `abort` may raise CannotWrite."""

    def __init__(self, of: TopicPartition, writer: RecordWriter, consumer: Consumer, failures: _Failures) -> None:
        self._of = of
        self._writer = writer
        self._consumer = consumer
        self._failures = failures
        self._is_open = False
        self._records = 0
        self._bytes = 0

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """The offset of the last record that was written to each partition."""
        return self._writer.ends

    def before(self) -> Progress | None:
        """Return what earlier runs have written; None where there were none."""
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
        """Write a record within the open transaction; `timestamp` is in ms."""
        with self._failures:
            self._writer.write(to, key, value, timestamp, headers)

    def add(self, records: int, size: int) -> bool:
        """Count records that came from the source, and their bytes; return whether the transaction has enough."""
        self._records += records
        self._bytes += size
        return self._records >= MOST_RECORDS or self._bytes >= MOST_BYTES

    def commit(self, progress: Progress) -> None:
        """Commit what was written and how far it reaches."""
        with self._failures:
            self._writer.commit(progress.committed(self._of))
        self._is_open = False

    def abort(self) -> None:
        """Abort the open transaction, if there is one. Where that fails, the broker does it after a timeout."""
        if self._is_open:
            self._is_open = False
            with suppress(*_FAILURES):
                self._writer.abort()


_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.2


def wait_until_readable(held_back: Callable[[], list[str]]) -> None:
    """`held_back`: a sentence for each partition of which readers do not see all yet.

    Raises CannotWrite where none is added to those that they do see for a minute.
    """
    fewest, end = None, 0.0
    while told := held_back():
        if fewest is None or len(told) < fewest:
            fewest, end = len(told), time.monotonic() + _PATIENCE_SECONDS
        elif time.monotonic() > end:
            raise CannotWrite(
                f"all is written and committed, but after {_PATIENCE_SECONDS:g} s readers do not see all of "
                f"{len(told):,} partitions: {told[0]}. Is it somebody else's? End it, and start again, which writes "
                "nothing twice"
            )
        time.sleep(_PAUSE_SECONDS)  # nothing announces that a partition shows what was committed
