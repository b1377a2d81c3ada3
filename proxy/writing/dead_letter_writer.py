"""Writes bad records into dead-letter topics, durably: a record counts as kept when all replicas in sync have it.

One producer for all topics and connections of a process, so that many clients' records share batches, and a thread of
its own that hands over and hears what became of it. What is held is bounded by who claims memory for it
(`limits.max_quarantined_bytes`), so one topic that takes nothing stands in no other's way. A record that is not stored
within `within_seconds` is given up, and its batch told as failed. It may have been stored all the same, and the batch
comes again: each record is kept at least once.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.reporting.bounded_queue import BoundedQueue
from sluicegate.proxy.reporting.events.violation_event import ClientDetails, client_details
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.scheduling.switch_interval import ShortTurns
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.writing.dead_letter_headers import headers_of
from sluicegate.proxy.writing.topic_writer import CannotWrite, ClientMissing, TopicWriter, check_client
from sluicegate.validation.produce import Place

Failures = dict[Place, str]
Tell = Callable[[Failures], None]

_MOST_JOBS = 100_000
_UNBOUNDED = 1 << 62
_POLL_SECONDS = 0.01
_SERVED_EVERY = 500
_AT_THE_END_SECONDS = 1.0


class DeadLetterWriter:
    """See the module. `call_soon` runs something on the event loop. The thread begins with the first record."""

    def __init__(self, upstream: Upstream, within_seconds: float, call_soon: Callable[..., Any]) -> None:
        self._call_soon = call_soon
        self._writer = TopicWriter(upstream, _settings(within_seconds))
        self._queue: BoundedQueue[_Job] = BoundedQueue(_MOST_JOBS, _UNBOUNDED)
        self._under_way = 0
        self._turns = ShortTurns()
        self._thread: threading.Thread | None = None

    def write(self, identity: ClientIdentity, letters: Sequence[DeadLetters], tell: Tell) -> None:
        """Store all records of `letters`; `tell` of which batches some could not be, and why. Never waits."""
        job = _Job(client_details(identity), letters, tell)
        if self._thread is None:
            context = contextvars.copy_context()  # log lines say which worker this is
            self._thread = threading.Thread(target=context.run, args=(self._run,), name="dead letters", daemon=True)
            self._thread.start()
        if not self._queue.put(job, 0):
            self._call_soon(tell, {each.place: "too much waits to be kept already" for each in letters})

    def close(self) -> None:
        """Nobody waits for anything any more."""
        self._queue.close()
        if self._thread is not None:
            self._thread.join(_AT_THE_END_SECONDS)

    def _run(self) -> None:
        while not self._queue.ended:
            if not self._begin_next() and self._under_way:
                self._writer.serve(_POLL_SECONDS)

    def _begin_next(self) -> bool:
        """Whether there was something. Nothing of it is kept here while there is no other."""
        # With nothing under way there is nothing to be told of: no need to wake up.
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
        except ClientMissing as error:  # asked for by a file that was read later than the start
            for letters in job.letters:
                job.failures.setdefault(letters.place, str(error))
        job.whole = True
        self._look_at(job)

    def _hand_over(self, job: "_Job", letters: DeadLetters) -> None:
        for count, record in enumerate(letters.records, 1):

            def told(failure: str | None) -> None:
                job.left -= 1
                if failure is not None:
                    job.failures.setdefault(letters.place, failure)
                self._look_at(job)

            try:
                headers = headers_of(record, letters, job.client)
                self._writer.write(letters.topic, record.key, record.value, headers, told)
            except CannotWrite as error:
                job.failures.setdefault(letters.place, str(error))
                return
            job.left += 1
            self._turns.give_way()
            if count % _SERVED_EVERY == 0:
                self._writer.serve(0)

    def _look_at(self, job: "_Job") -> None:
        if job.whole and job.left == 0:
            self._under_way -= 1
            with suppress(RuntimeError):  # the loop has ended, and its clients with it
                self._call_soon(job.tell, job.failures)


class _Job:
    """What one request has to be kept. `left` records are under way; `whole`: all were handed over that can be."""

    def __init__(self, client: ClientDetails, letters: Sequence[DeadLetters], tell: Tell) -> None:
        self.client = client
        self.letters = letters
        self.tell = tell
        self.failures: Failures = {}
        self.left = 0
        self.whole = False


def _settings(within_seconds: float) -> dict[str, str | int | bool]:
    return {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 5,
        "batch.size": 131_072,  # small, because a topic may take less than Kafka's default
        "compression.type": "lz4",
        "partitioner": "murmur2_random",  # as Java's clients: records of one key stay in one partition
        "message.timeout.ms": int(within_seconds * 1000),
        "message.max.bytes": 1_000_000_000,  # the topic says what is too large
        "queue.buffering.max.messages": 2_147_483_647,  # the memory is bounded before
        "queue.buffering.max.kbytes": 2_147_483_647,
        # A topic that was missing is found soon after it was made, and missed soon after it has gone.
        "topic.metadata.propagation.max.ms": 2_000,
        "topic.metadata.refresh.interval.ms": 10_000,
        "metadata.max.age.ms": 10_000,
    }
