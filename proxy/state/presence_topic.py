"""Announces this proxy in the presence topic every 5 s, and reads the announcements of all proxies on request."""

import contextvars
import threading
import time
from collections.abc import Callable

import structlog

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.state.bounded_read import read_newest
from sluicegate.proxy.state.fleet_view import FleetView, fleet_of
from sluicegate.proxy.state.presence import EVERY_SECONDS, Presence, encode
from sluicegate.proxy.state.topic_description import TopicUnavailable, admin_client, describe
from sluicegate.proxy.state.topic_plan import TopicPlan
from sluicegate.proxy.writing.topic_writer import DeliveryFailure, TopicWriter

# The announcements of a thousand proxies in one minute.
_MOST_READ = 12_000
_READ_AGAIN_SECONDS = 2.0
_JOIN_SECONDS = 2.0
_WRITER: dict[str, str | int | bool] = {"acks": 1, "compression.type": "lz4", "message.timeout.ms": 5000}


class PresenceTopic:
    """One proxy's presence topic.

    `announcement` is called in this object's thread. `health` records the results of writes.
    """

    def __init__(
        self, plan: TopicPlan, upstream: Upstream, announcement: Callable[[], Presence], health: WriteHealth
    ) -> None:
        self._topic = plan.name
        self._destination = f"state.presence_topic {plan.name}"
        self._health = health
        self.remedy = plan.remedy
        self._upstream = upstream
        self._announcement = announcement
        self._writer = TopicWriter(upstream, _WRITER)
        self._is_there = False
        self._log = structlog.get_logger("sluicegate.state")
        self._complaints = OnceAMinute()
        self._reading = threading.Lock()
        self._read_at = -_READ_AGAIN_SECONDS
        self._view: FleetView | TopicUnavailable = TopicUnavailable("not read yet")
        self._instance = ""
        self._ends = threading.Event()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="presence topic", daemon=True)

    def start(self) -> None:
        """Announce this proxy until `close`."""
        self._thread.start()

    def close(self) -> None:
        """Stop announcing."""
        self._ends.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def view(self) -> FleetView:
        """Return all proxies that have announced themselves in the last minutes.

        The view is at most 2 s old. Blocks for up to a few seconds. Raises TopicUnavailable.
        """
        with self._reading:
            if time.monotonic() - self._read_at > _READ_AGAIN_SECONDS:
                self._view = self._read()
                self._read_at = time.monotonic()
            if isinstance(self._view, TopicUnavailable):
                raise self._view
            return self._view

    def _read(self) -> FleetView | TopicUnavailable:
        try:
            records = read_newest(self._upstream, self._topic, _MOST_READ)
        except TopicUnavailable as error:
            return error
        return fleet_of(records, self._instance, time.time_ns() // 10**6)

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                self._announce()
            except Exception as error:  # without an announcement, the other proxies show this one as stale
                self._failed(str(error))
            end = time.monotonic() + EVERY_SECONDS
            while not self._ends.is_set() and (left := end - time.monotonic()) > 0:
                self._writer.serve(0)
                self._ends.wait(min(left, 1.0))

    def _announce(self) -> None:
        """Write an announcement. Raises TopicUnavailable and RecordNotAccepted."""
        if not self._is_there:  # a producer's request could create the topic
            describe(admin_client(self._upstream), self._topic)
            self._is_there = True
        presence = self._announcement()
        self._instance = presence.instance
        self._writer.write(self._topic, presence.name.encode(), encode(presence), [], self._delivered)

    def _delivered(self, failure: DeliveryFailure | None) -> None:
        if failure is None:
            self._health.succeeded(self._destination)
        else:
            self._is_there = False
            self._failed(failure.reason)

    def _failed(self, reason: str) -> None:
        self._health.failed(self._destination, reason)
        if self._complaints.due(reason) is not None:
            self._log.warning("proxy not announced", topic=self._topic, reason=reason)
