"""Tracks the known state of each producer, so that each beginning, change and end is reported once.

A producer is a producer id in a topic; clients without idempotence share the id -1. A producer's mark is a kind of
invalid timestamp or a violation. The mark begins with the first record that shows it. It has ended when its producer
has written for a while without it, wherever in their ranges (`append_times`) the last record with the mark and the last
record without it were appended. A producer's distance is the largest bound of the profile's ladder that half of its
valid records exceed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sluicegate.pipeline.jobs.profile.cells import LADDER_MS
from sluicegate.pipeline.report.wording import duration

_MOST_PRODUCERS = 50_000
_FORGOTTEN_AFTER_MS = 30 * 86_400_000
_LEAST_DISTANCE_MS = 60_000  # the accuracy of append times
_LEAST_RECORDS = 10
_NEAR = 1  # in steps of the ladder, because a distance close to a bound switches between two steps


class FindingSubject(StrEnum):
    """The subject of a finding."""

    INVALID_TIMESTAMP = "damage"
    VIOLATION = "violation"
    AHEAD = "ahead"
    BEHIND = "behind"


class FindingState(StrEnum):
    """The change of state that a finding reports."""

    BEGAN = "began"
    CHANGED = "changed"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The number of a producer's `records` with a mark (`what`) in one batch.

    The first of these records was appended between the hours (ms) `first_hour` and `first_until`, the last between
    `last_hour` and `last_until`.
    """

    topic: str
    producer_id: int
    about: FindingSubject
    what: str
    records: int
    first_hour: int
    first_until: int
    last_hour: int
    last_until: int


@dataclass(frozen=True, slots=True)
class DistanceCounts:
    """The numbers of a producer's valid records in one batch by distance, on one `side` of their append.

    Each number counts the records beyond one bound (ms) of the ladder but not beyond the next.
    """

    topic: str
    producer_id: int
    side: FindingSubject
    counts: Mapping[int, int]
    last_hour: int


@dataclass(frozen=True, slots=True)
class WatchFinding:
    """A finding to report.

    `hour` (ms) is the hour in which the mark was first seen, or last seen if it has ended. The mark was seen by
    `hour_until` at the latest.
    """

    topic: str
    producer_id: int
    about: FindingSubject
    change: FindingState
    what: str
    before: str
    records: int
    hour: int
    hour_until: int


@dataclass(slots=True)
class _Known:
    marks: dict[str, dict[str, int]] = field(default_factory=dict)
    distances: dict[str, int] = field(default_factory=dict)
    last_hour: int = 0


class Producers:
    """The producers in all topics that wrote most recently."""

    def __init__(self, quiet_ms: int, most: int = _MOST_PRODUCERS) -> None:
        """Take the time (ms) after which a mark has ended if its producer still writes."""
        self._quiet_ms = quiet_ms
        self._most = most
        self._known: dict[tuple[str, int], _Known] = {}

    @classmethod
    def of_rows(cls, rows: Iterable[list[Any]], quiet_ms: int) -> "Producers":
        """Return the producers that `rows` describe."""
        found = cls(quiet_ms)
        for topic, producer_id, marks, distances, last_hour in rows:
            found._known[topic, producer_id] = _Known(marks, distances, last_hour)
        return found

    def rows(self) -> list[list[Any]]:
        """Return the state as rows for JSON."""
        return [[*producer, its.marks, its.distances, its.last_hour] for producer, its in sorted(self._known.items())]

    def take(self, seen: Iterable[Occurrence], distances: Iterable[DistanceCounts]) -> list[WatchFinding]:
        """Return the new findings in a batch."""
        found: list[WatchFinding] = []
        touched: dict[tuple[str, int], None] = {}
        for each in sorted(seen, key=lambda one: (one.topic, one.producer_id, one.first_hour, one.about, one.what)):
            found += self._take_mark(each)
            touched[each.topic, each.producer_id] = None
        for distance in sorted(distances, key=lambda one: (one.topic, one.producer_id, one.side)):
            found += self._take_distance(distance)
            touched[distance.topic, distance.producer_id] = None
        for producer in touched:
            found += self._ended(producer)
        self._forget()
        return found

    def _of(self, topic: str, producer_id: int, hour: int) -> _Known:
        known = self._known.setdefault((topic, producer_id), _Known())
        known.last_hour = max(known.last_hour, hour)
        return known

    def _take_mark(self, seen: Occurrence) -> list[WatchFinding]:
        known = self._of(seen.topic, seen.producer_id, seen.last_hour)
        marks = known.marks.setdefault(seen.about, {})
        before = sorted(marks)
        is_new = seen.what not in marks
        marks[seen.what] = max(marks.get(seen.what, 0), seen.last_until)
        if not is_new:
            return []
        # A producer usually has one kind of invalid timestamp at a time, so a different kind is a change. Violations
        # are independent of each other.
        changed = seen.about is FindingSubject.INVALID_TIMESTAMP and before
        change = (FindingState.CHANGED, ", ".join(before)) if changed else (FindingState.BEGAN, "")
        about = (seen.topic, seen.producer_id, seen.about)
        return [WatchFinding(*about, change[0], seen.what, change[1], seen.records, seen.first_hour, seen.first_until)]

    def _take_distance(self, distance: DistanceCounts) -> list[WatchFinding]:
        known = self._of(distance.topic, distance.producer_id, distance.last_hour)
        total = sum(distance.counts.values())
        if total < _LEAST_RECORDS:
            return []
        step, before = _middle(distance.counts, total), known.distances.get(distance.side)
        if before is not None and abs(_rank(step) - _rank(before)) <= _NEAR:
            return []
        known.distances[distance.side] = step
        if before is None and step == 0:
            return []
        change = FindingState.BEGAN if not before else FindingState.CHANGED if step else FindingState.ENDED
        was = _words(before) if before is not None else ""
        about = (distance.topic, distance.producer_id, distance.side)
        return [WatchFinding(*about, change, _words(step), was, total, distance.last_hour, distance.last_hour)]

    def _ended(self, producer: tuple[str, int]) -> list[WatchFinding]:
        known, found = self._known[producer], []
        for about, marks in known.marks.items():
            for what in [what for what, hour in sorted(marks.items()) if hour < known.last_hour - self._quiet_ms]:
                last = marks.pop(what)
                found.append(
                    WatchFinding(*producer, FindingSubject(about), FindingState.ENDED, what, "", 0, last, last)
                )
        return found

    def _forget(self) -> None:
        latest = max((its.last_hour for its in self._known.values()), default=0)
        kept = [
            (producer, its) for producer, its in self._known.items() if its.last_hour >= latest - _FORGOTTEN_AFTER_MS
        ]
        kept.sort(key=lambda one: (one[1].last_hour, one[0]))
        self._known = dict(kept[-self._most :])


def _middle(counts: Mapping[int, int], total: int) -> int:
    """Return the largest bound that at least half of the records exceed; 0 if the distance is below the accuracy."""
    beyond = 0
    for bound in sorted(counts, reverse=True):
        beyond += counts[bound]
        if 2 * beyond >= total:
            return bound if bound >= _LEAST_DISTANCE_MS else 0
    return 0


def _rank(step: int) -> int:
    return 0 if step == 0 else 1 + LADDER_MS.index(step) - LADDER_MS.index(_LEAST_DISTANCE_MS)


def _words(step: int) -> str:
    return f"more than {duration(step)}" if step else f"within {duration(_LEAST_DISTANCE_MS)}"
