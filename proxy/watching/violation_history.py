"""Reads recent violations from `violations.topic`, to which all proxies write.

A read is limited to the newest 10,000 events, to 64 MiB and to a few seconds.
"""

import threading
from dataclasses import dataclass
from typing import Any

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.state.range_read import read_range
from sluicegate.proxy.state.topic_description import TopicUnavailable
from sluicegate.proxy.watching.violation_counts import EventSelection, RecordedGroup, ViolationCounts

MOST_EVENTS = 10_000
_MOST_BYTES = 64 << 20
_MOST_GROUPS = 300
_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RecordedViolations:
    """Violations from `since_ms` to `until_ms` (Unix time, ms) in a topic, most batches first.

    All events from `complete_since_ms` on were read. If it is None, the limit on size or time ended the read. `other`
    is the number of batches in groups that are not among `groups`. `skipped` is the number of records that are not
    events.
    """

    topic: str
    since_ms: int
    until_ms: int
    complete_since_ms: int | None
    events: int
    skipped: int
    other: int
    groups: tuple[RecordedGroup, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for the API."""
        return {name: getattr(self, name) for name in self.__slots__}


class ViolationHistory:
    """Reads one topic, for one caller at a time. Thread-safe."""

    def __init__(self, topic: str, upstream: Upstream) -> None:
        self.topic = topic
        self._upstream = upstream
        self._reading = threading.Lock()

    def read(self, since_ms: int, until_ms: int, wanted: EventSelection) -> RecordedViolations:
        """Return the violations. Blocks for up to a few seconds. Raises TopicUnavailable."""
        counts = ViolationCounts(wanted, set())  # the topic may contain a record twice, with the same id
        if not self._reading.acquire(timeout=_WAIT_SECONDS):
            raise TopicUnavailable("other requests read the topic now; try again")
        try:
            times_ms = since_ms, until_ms
            read = read_range(self._upstream, self.topic, times_ms, MOST_EVENTS, _MOST_BYTES, counts.take)
        finally:
            self._reading.release()
        groups = counts.groups()
        other = counts.other + sum(group["batches"] for group in groups[_MOST_GROUPS:])
        shown = tuple(groups[:_MOST_GROUPS])
        return RecordedViolations(
            self.topic, since_ms, until_ms, read.complete_since_ms, read.records, counts.skipped, other, shown
        )
