"""Sends violation events to a Kafka topic (`violations.topic`), from a thread with a bounded queue.

Clients never wait for the cluster. Events that do not fit into the queue are dropped and counted. Events that the
cluster does not accept are counted, and one log line per minute gives the reason. A record's key is the event's topic,
so that a topic's events stay in order. Its value is the event (docs/violations.md).
"""

import contextvars
import threading
import time

import structlog

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.reporting.bounded_queue import BoundedQueue
from sluicegate.proxy.reporting.events.encoding import (
    CLOUD_EVENT_CONTENT_TYPE,
    Encode,
    encode_cloud_event,
    encode_json,
)
from sluicegate.proxy.reporting.events.violation_event import Event
from sluicegate.proxy.reporting.events.violation_writer import QUEUE_FULL
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.scheduling.short_turns import ShortTurns
from sluicegate.proxy.writing.topic_writer import (
    DeliveryFailure,
    Header,
    RecordNotAccepted,
    TopicWriter,
    WriteQueueFull,
)

_MAX_QUEUED_BYTES = 8 << 20
_AT_THE_END_SECONDS = 3.0
_POLL_SECONDS = 0.1
_CLOUD_EVENT: Header = "content-type", CLOUD_EVENT_CONTENT_TYPE.encode()
_SETTINGS: dict[str, str | int | bool] = {
    "acks": "all",
    "linger.ms": 100,
    "compression.type": "lz4",
    "message.timeout.ms": 30_000,
    "queue.buffering.max.messages": 2_000,
    "queue.buffering.max.kbytes": 8 << 10,
}


class ViolationTopic:
    """Sends events to `topic`. Requires confluent-kafka (`check_client`). `health` records the results."""

    def __init__(
        self,
        topic: str,
        upstream: Upstream,
        queue_size: int,
        counters: Counters,
        health: WriteHealth,
        encode: Encode = encode_json,
    ) -> None:
        self._encode = encode
        self._headers = [_CLOUD_EVENT] if encode is encode_cloud_event else []
        self._health = health
        self._destination = f"violations.topic {topic}"
        self._topic = topic
        self._counters = counters
        self._queue: BoundedQueue[Event] = BoundedQueue(queue_size, _MAX_QUEUED_BYTES)
        self._writer = TopicWriter(upstream, _SETTINGS)
        self._under_way = 0
        self._ends_at: float | None = None
        self._log = structlog.get_logger("sluicegate.violations")
        self._complaints = OnceAMinute()
        context = contextvars.copy_context()  # the context contains the worker's index for log lines
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="violation topic", daemon=True)
        self._thread.start()

    def write(self, event: Event) -> None:
        """Queue an event without waiting."""
        if not self._queue.put(event, event.size):
            self._counters.violation_topic_events_dropped += 1
            self._health.failed(self._destination, QUEUE_FULL)

    def close(self) -> None:
        """Send the queued events for at most 3 s. Count the remaining events as failed."""
        self._ends_at = time.monotonic() + _AT_THE_END_SECONDS
        self._queue.close()
        self._thread.join(_AT_THE_END_SECONDS + _POLL_SECONDS)
        left = len(self._queue) + self._under_way
        if left:
            self._counters.violation_topic_events_failed += left
            self._log.error("violation events lost at shutdown", topic=self._topic, events=left)

    def _run(self) -> None:
        turns = ShortTurns()
        while not self._queue.ended:
            # Without records in flight, there are no delivery reports to wait for.
            event = self._queue.take(_POLL_SECONDS if self._under_way else None)
            if event is not None:
                self._send(event)
                turns.give_way()
            self._writer.serve(0)
            if self._is_over():
                return
        while self._under_way and not self._is_over():
            self._writer.serve(_POLL_SECONDS)

    def _send(self, event: Event) -> None:
        """Send an event. Waits while the producer's queue is full.

        Meanwhile this object's own queue fills up, and drops events.
        """
        try:
            key = None if event.topic is None else event.topic.encode(errors="replace")
            value = self._encode(event)
        except Exception as error:  # an event that cannot be encoded must not stop the next ones
            self._lost(str(error))
            return
        while True:
            try:
                self._writer.write(self._topic, key, value, self._headers, self._delivered)
            except WriteQueueFull:
                if self._is_over():
                    self._lost("the proxy stopped")
                    return
                self._writer.serve(_POLL_SECONDS)
            except RecordNotAccepted as error:
                self._lost(str(error))
                return
            else:
                self._under_way += 1
                return

    def _delivered(self, failure: DeliveryFailure | None) -> None:
        self._under_way -= 1
        if failure is not None:
            self._lost(failure.reason)
        else:
            self._health.succeeded(self._destination)

    def _is_over(self) -> bool:
        return self._ends_at is not None and time.monotonic() > self._ends_at

    def _lost(self, reason: str) -> None:
        self._counters.violation_topic_events_failed += 1
        self._health.failed(self._destination, reason)
        if self._complaints.due(reason) is not None:
            self._log.error(
                "violation events not sent",
                topic=self._topic,
                reason=reason,
                lost_so_far=self._counters.violation_topic_events_failed,
                advice="check that the topic of violations.topic exists and the proxy may write to it",
            )
