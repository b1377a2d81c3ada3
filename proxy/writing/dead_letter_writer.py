"""Writes bad records durably into dead-letter topics.

A record counts as stored when all in-sync replicas have stored it. One producer serves all topics and connections of a
process, so that records from many clients share batches. Its thread queues records and receives delivery reports. The
callers limit the memory (`limits.max_quarantined_bytes`), so a topic that accepts nothing does not block others.

A record that is not stored within `within_seconds` fails, and its batch is reported as failed. The record may be stored
nevertheless, and the producer retries the batch, so delivery is at least once.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sluicegate.config.upstream import Upstream
from sluicegate.protocol.records.contents import TakenRecord
from sluicegate.proxy.reporting.bounded_queue import BoundedQueue
from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.reporting.waiting_clients import waiting_for
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.scheduling.short_turns import ShortTurns
from sluicegate.proxy.session.client.client_details import ClientDetails, client_details
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.writing.topic_writer import (
    ClientMissing,
    DeliveryFailure,
    Header,
    RecordNotAccepted,
    TopicWriter,
    check_client,
)
from sluicegate.validation.dispositions.quarantine import DeadLetterHeader, ViolationCause, as_written
from sluicegate.validation.validated_request import Place

Failures = dict[Place, str]
ReportFailures = Callable[[Failures], None]

_MOST_JOBS = 100_000
_UNBOUNDED = 1 << 62
_POLL_SECONDS = 0.01
_SERVED_EVERY = 500
_AT_THE_END_SECONDS = 1.0


class DeadLetterWriter:
    """Writes dead letters. The thread starts with the first record.

    `call_soon` calls a function on the event loop. `health` records the progress of writes by topic. The caller records
    the failures.
    """

    def __init__(
        self, upstream: Upstream, within_seconds: float, call_soon: Callable[..., Any], health: WriteHealth
    ) -> None:
        self._health = health
        self._call_soon = call_soon
        self._writer = TopicWriter(upstream, _settings(within_seconds))
        self._queue: BoundedQueue[_Job] = BoundedQueue(_MOST_JOBS, _UNBOUNDED)
        self._under_way = 0
        self._turns = ShortTurns()
        self._thread: threading.Thread | None = None

    def write(self, identity: ClientIdentity, letters: Sequence[DeadLetters], report: ReportFailures) -> None:
        """Store all records in `letters` without waiting.

        Call `report` with the batches that have failures, and the reasons.
        """
        client = client_details(identity)
        job = _Job(client, letters, self._noted(client, letters, report))
        if self._thread is None:
            context = contextvars.copy_context()  # the context contains the worker's index for log lines
            self._thread = threading.Thread(target=context.run, args=(self._run,), name="dead letters", daemon=True)
            self._thread.start()
        if not self._queue.put(job, 0):
            self._call_soon(job.report, {each.place: "the quarantine queue is full" for each in letters})

    def _noted(self, client: ClientDetails, letters: Sequence[DeadLetters], report: ReportFailures) -> ReportFailures:
        """Record the start of the write, and return a version of `report` that also records its end."""
        wrote = [(each.destination, waiting_for(client, each.source), each.place) for each in letters]
        writes = {(topic, waiting) for topic, waiting, _ in wrote}
        numbers = [self._health.begin(topic, waiting) for topic, waiting in writes]

        def ended(failures: Failures) -> None:
            for number in numbers:
                self._health.end(number)
            for topic, waiting in {(topic, waiting) for topic, waiting, place in wrote if place not in failures}:
                self._health.succeeded(topic, waiting)
            report(failures)

        return ended

    def close(self) -> None:
        """Stop, because no caller waits for results any more."""
        self._queue.close()
        if self._thread is not None:
            self._thread.join(_AT_THE_END_SECONDS)

    def _run(self) -> None:
        while not self._queue.ended:
            if not self._begin_next() and self._under_way:
                self._writer.serve(_POLL_SECONDS)

    def _begin_next(self) -> bool:
        """Start the next job and return True, or return False if there is none.

        No reference to the job is kept here afterwards.
        """
        # Without records in flight, there are no delivery reports to wait for.
        job = self._queue.take(0 if self._under_way else None)
        if job is not None:
            self._begin(job)
        return job is not None

    def _begin(self, job: "_Job") -> None:
        self._under_way += 1
        try:
            check_client("quarantine")
            for letters in job.letters:
                self._hand_over(job, letters)
        except ClientMissing as error:  # a reloaded configuration may need the client library after the start
            for letters in job.letters:
                job.failures.setdefault(letters.place, str(error))
        job.whole = True
        self._finish_if_done(job)

    def _hand_over(self, job: "_Job", letters: DeadLetters) -> None:
        for count, record in enumerate(letters.records, 1):

            def delivered(failure: DeliveryFailure | None) -> None:
                job.left -= 1
                if failure is not None:
                    job.failures.setdefault(letters.place, failure.reason)
                self._finish_if_done(job)

            try:
                headers = headers_of(record, letters, job.client, self._turns.give_way)
                self._writer.write(letters.topic, record.key, record.value, headers, delivered)
            except RecordNotAccepted as error:
                job.failures.setdefault(letters.place, str(error))
                return
            job.left += 1
            self._turns.give_way()
            if count % _SERVED_EVERY == 0:
                self._writer.serve(0)

    def _finish_if_done(self, job: "_Job") -> None:
        if job.whole and job.left == 0:
            self._under_way -= 1
            with suppress(RuntimeError):  # the event loop is closed, and so are its clients
                self._call_soon(job.report, job.failures)


class _Job:
    """One request's dead letters.

    `left` is the number of records in flight. `whole` is true when all records that can be queued have been queued.
    """

    def __init__(self, client: ClientDetails, letters: Sequence[DeadLetters], report: ReportFailures) -> None:
        self.client = client
        self.letters = letters
        self.report = report
        self.failures: Failures = {}
        self.left = 0
        self.whole = False


def _settings(within_seconds: float) -> dict[str, str | int | bool]:
    return {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 5,
        "batch.size": 131_072,  # small, because a topic's max.message.bytes may be below Kafka's default
        "compression.type": "lz4",
        "partitioner": "murmur2_random",  # as in Java clients, so that records with one key stay in one partition
        "message.timeout.ms": int(within_seconds * 1000),
        "message.max.bytes": 1_000_000_000,  # the topic's own limit applies
        "queue.buffering.max.messages": 2_147_483_647,  # the callers limit the memory
        "queue.buffering.max.kbytes": 2_147_483_647,
        # This makes librdkafka notice new and deleted topics soon.
        "topic.metadata.propagation.max.ms": 2_000,
        "topic.metadata.refresh.interval.ms": 10_000,
        "metadata.max.age.ms": 10_000,
    }


def headers_of(
    record: TakenRecord, letters: DeadLetters, client: ClientDetails, give_way: Callable[[], None]
) -> list[Header]:
    """Return a dead letter's headers.

    They are the record's own, followed by those about the violation and the client (known fields only). Kafka clients
    return the last of several headers with the same name, so the proxy's headers apply even after an earlier
    quarantine. Calls `give_way` after every few headers.
    """
    headers = as_written(record.headers, give_way)
    headers += ((name, text.encode(errors="replace")) for name, text in _ours(record, letters, client))
    return headers


def _ours(record: TakenRecord, letters: DeadLetters, client: ClientDetails) -> list[tuple[str, str]]:
    software = None
    if client.software_name is not None:
        software = f"{client.software_name} {client.software_version or ''}".rstrip()
    why: ViolationCause = record.why
    optional = (
        (DeadLetterHeader.RULE, ", ".join(why.rules) or None),
        (DeadLetterHeader.CLIENT_ID, client.client_id),
        (DeadLetterHeader.SOFTWARE, software),
        (DeadLetterHeader.PRINCIPAL, client.principal),
    )
    return [
        (DeadLetterHeader.REASON, why.reason.value),
        (DeadLetterHeader.TOPIC, letters.source),
        (DeadLetterHeader.PARTITION, str(letters.partition)),
        (DeadLetterHeader.INDEX, str(record.index)),
        (DeadLetterHeader.TIMESTAMP, str(record.timestamp)),
        *((name, text) for name, text in optional if text is not None),
        (DeadLetterHeader.ADDRESS, client.peer),
        *(((DeadLetterHeader.COPY, "true"),) if letters.is_copy else ()),
        (DeadLetterHeader.VERSION, VERSION),
    ]
