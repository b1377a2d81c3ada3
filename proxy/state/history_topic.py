"""Writes and reads the history topic with the proxy's own login.

A thread with a bounded queue writes entries. They are read on request, with limits on time and records.
"""

import contextvars
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import structlog

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.reporting.bounded_queue import BoundedQueue
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.state.change import UnreadableChange
from sluicegate.proxy.state.history_entry import Entry, decode, encode, merged
from sluicegate.proxy.state.range_read import read_range
from sluicegate.proxy.state.topic_description import TopicUnavailable, admin_client, describe
from sluicegate.proxy.writing.topic_writer import DeliveryFailure, RecordNotAccepted, TopicWriter

_POLL_SECONDS = 0.1
_MOST_READ, _MOST_BYTES = 20_000, 64 << 20
_NO_END_MS = 1 << 62
_MOST_QUEUED, _MOST_QUEUED_BYTES = 1000, 4 << 20
_AT_THE_END_SECONDS = 2.0
_WRITER: dict[str, str | int | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "lz4",
    "message.timeout.ms": 30_000,
}


@dataclass(frozen=True, slots=True)
class ChangeHistory:
    """The changes since `since_ms` (Unix time, ms), newest first. `is_complete` is true if all were read in time."""

    since_ms: int
    entries: tuple[Entry, ...]
    is_complete: bool


class HistoryTopic:
    """One proxy's history topic. `health` records the results of writes."""

    def __init__(self, topic: str, upstream: Upstream, health: WriteHealth) -> None:
        self._topic = topic
        self._destination = f"state.history_topic {topic}"
        self._upstream = upstream
        self._health = health
        self._log = structlog.get_logger("sluicegate.state")
        self._queue: BoundedQueue[Entry] = BoundedQueue(_MOST_QUEUED, _MOST_QUEUED_BYTES)
        self._writer = TopicWriter(upstream, _WRITER)
        self._under_way = 0
        self._is_there = False
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="history topic", daemon=True)
        self._thread.start()

    def add(self, entry: Entry) -> None:
        """Queue an entry without waiting."""
        if not self._queue.put(entry, 1000):
            self._health.failed(self._destination, "the queue of entries is full")

    def close(self) -> None:
        """Write the queued entries, for at most 2 s."""
        self._queue.close()
        self._thread.join(_AT_THE_END_SECONDS)

    def read(self, since_ms: int) -> ChangeHistory:
        """Return the changes since `since_ms` (Unix time, ms).

        Blocks for up to a few seconds. Raises TopicUnavailable.
        """
        entries: list[Entry] = []

        def take(value: bytes) -> None:
            with suppress(UnreadableChange):  # a record of another program
                entries.append(decode(value))

        times_ms = since_ms, _NO_END_MS  # a proxy's clock may be ahead
        read = read_range(self._upstream, self._topic, times_ms, _MOST_READ, _MOST_BYTES, take)
        return ChangeHistory(since_ms, tuple(merged(entries)), read.complete_since_ms == since_ms)

    def _run(self) -> None:
        while not self._queue.ended:
            entry = self._queue.take(_POLL_SECONDS if self._under_way else None)
            if entry is not None:
                self._send(entry)
            self._writer.serve(0)
        deadline = time.monotonic() + _AT_THE_END_SECONDS
        while self._under_way and time.monotonic() < deadline:
            self._writer.serve(_POLL_SECONDS)

    def _send(self, entry: Entry) -> None:
        why_missing = None if self._is_there else self._why_missing()
        if why_missing is not None:
            self._health.failed(self._destination, why_missing)
            return
        self._is_there = True
        try:
            self._writer.write(self._topic, entry.id.encode(), encode(entry), [], self._delivered)
        except RecordNotAccepted as error:
            self._health.failed(self._destination, str(error))
        else:
            self._under_way += 1

    def _why_missing(self) -> str | None:
        """Return why the topic cannot be described, or None if it exists.

        This check is needed because a producer's request could create the topic.
        """
        try:
            describe(admin_client(self._upstream), self._topic)
        except TopicUnavailable as error:
            return str(error)
        return None

    def _delivered(self, failure: DeliveryFailure | None) -> None:
        self._under_way -= 1
        if failure is None:
            self._health.succeeded(self._destination)
        else:
            self._health.failed(self._destination, failure.reason)
            self._log.warning("history entry lost", topic=self._topic, reason=failure.reason)
