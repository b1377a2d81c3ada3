"""What is known of each producer, so that what begins, changes or ends is told once.

A producer is who has an id in a topic; clients without idempotence have none, and are one (-1). A producer's mark is a
damage or a violation. It begins when it is first seen, and has ended when its producer has written for a while without
it. A producer's distance is the largest bound of the profile's ladder that half of its sound records lie beyond.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sluicegate.pipeline.jobs.profile.cells import LADDER_MS
from sluicegate.pipeline.report.wording import duration

_MOST_PRODUCERS = 50_000
_FORGOTTEN_AFTER_MS = 30 * 86_400_000
_LEAST_DISTANCE_MS = 60_000  # to which times of append are good
_LEAST_RECORDS = 10
_NEAR = 1  # of the ladder's steps: who lies at one goes to and fro


class About(StrEnum):
    """What a finding is about."""

    DAMAGE = "damage"
    VIOLATION = "violation"
    AHEAD = "ahead"
    BEHIND = "behind"


class Change(StrEnum):
    """What has become of it."""

    BEGAN = "began"
    CHANGED = "changed"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Seen:
    """In one batch: so many `records` of a producer with a mark (`what`), in these hours (ms)."""

    topic: str
    producer_id: int
    about: About
    what: str
    records: int
    first_hour: int
    last_hour: int


@dataclass(frozen=True, slots=True)
class Distance:
    """In one batch: how many of a producer's sound records lie beyond each bound (ms) of the ladder and not beyond the
    next, `side` of their append.
    """

    topic: str
    producer_id: int
    side: About
    counts: Mapping[int, int]
    last_hour: int


@dataclass(frozen=True, slots=True)
class Finding:
    """To be told. `hour` (ms): in which it was first seen, or last where it has ended."""

    topic: str
    producer_id: int
    about: About
    change: Change
    what: str
    before: str
    records: int
    hour: int


@dataclass(slots=True)
class _Known:
    marks: dict[str, dict[str, int]] = field(default_factory=dict)
    distances: dict[str, int] = field(default_factory=dict)
    last_hour: int = 0


class Producers:
    """Of all topics; those that have written last."""

    def __init__(self, quiet_ms: int, most: int = _MOST_PRODUCERS) -> None:
        """`quiet_ms`: a mark that is so old, while its producer writes, has ended."""
        self._quiet_ms = quiet_ms
        self._most = most
        self._known: dict[tuple[str, int], _Known] = {}

    @classmethod
    def of_rows(cls, rows: Iterable[list[Any]], quiet_ms: int) -> "Producers":
        """What `rows` gave."""
        found = cls(quiet_ms)
        for topic, producer_id, marks, distances, last_hour in rows:
            found._known[topic, producer_id] = _Known(marks, distances, last_hour)
        return found

    def rows(self) -> list[list[Any]]:
        """As JSON can hold it."""
        return [[*who, its.marks, its.distances, its.last_hour] for who, its in sorted(self._known.items())]

    def take(self, seen: Iterable[Seen], distances: Iterable[Distance]) -> list[Finding]:
        """What a batch tells that was not known."""
        found: list[Finding] = []
        touched: dict[tuple[str, int], None] = {}
        for each in sorted(seen, key=lambda one: (one.topic, one.producer_id, one.first_hour, one.about, one.what)):
            found += self._take_mark(each)
            touched[each.topic, each.producer_id] = None
        for distance in sorted(distances, key=lambda one: (one.topic, one.producer_id, one.side)):
            found += self._take_distance(distance)
            touched[distance.topic, distance.producer_id] = None
        for who in touched:
            found += self._ended(who)
        self._forget()
        return found

    def _of(self, topic: str, producer_id: int, hour: int) -> _Known:
        known = self._known.setdefault((topic, producer_id), _Known())
        known.last_hour = max(known.last_hour, hour)
        return known

    def _take_mark(self, seen: Seen) -> list[Finding]:
        known = self._of(seen.topic, seen.producer_id, seen.last_hour)
        marks = known.marks.setdefault(seen.about, {})
        before = sorted(marks)
        is_new = seen.what not in marks
        marks[seen.what] = max(marks.get(seen.what, 0), seen.last_hour)
        if not is_new:
            return []
        # Of damages a producer has one at a time, as a rule: another in its place is a change. Violations stand side by
        # side.
        changed = seen.about is About.DAMAGE and before
        told = (Change.CHANGED, ", ".join(before)) if changed else (Change.BEGAN, "")
        about = (seen.topic, seen.producer_id, seen.about)
        return [Finding(*about, told[0], seen.what, told[1], seen.records, seen.first_hour)]

    def _take_distance(self, distance: Distance) -> list[Finding]:
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
        change = Change.BEGAN if not before else Change.CHANGED if step else Change.ENDED
        was = _words(before) if before is not None else ""
        about = (distance.topic, distance.producer_id, distance.side)
        return [Finding(*about, change, _words(step), was, total, distance.last_hour)]

    def _ended(self, who: tuple[str, int]) -> list[Finding]:
        known, found = self._known[who], []
        for about, marks in known.marks.items():
            for what in [what for what, hour in sorted(marks.items()) if hour < known.last_hour - self._quiet_ms]:
                found.append(Finding(*who, About(about), Change.ENDED, what, "", 0, marks.pop(what)))
        return found

    def _forget(self) -> None:
        latest = max((its.last_hour for its in self._known.values()), default=0)
        kept = [(who, its) for who, its in self._known.items() if its.last_hour >= latest - _FORGOTTEN_AFTER_MS]
        kept.sort(key=lambda one: (one[1].last_hour, one[0]))
        self._known = dict(kept[-self._most :])


def _middle(counts: Mapping[int, int], total: int) -> int:
    """The largest bound that at least half lie beyond; 0 where the distance is too small to be known."""
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
