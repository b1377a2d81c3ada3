"""Marks record what happened to letters: redriven, or given up for a reason.

A mark is a record in a compacted topic that contains all marks. The dead letters themselves are never deleted. A mark
contains the topic id, so the marks of a deleted topic do not apply to a new topic with the same name.
"""

import json
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class MarkState(StrEnum):
    """The states of a letter that is no longer open."""

    REDRIVEN = "redriven"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on some offsets in a partition of a dead-letter topic.

    `ranges` are pairs of an inclusive first and an exclusive last offset. `reason` explains why letters were given up.
    `plan` is the digest of the plan, `actor` the person, and `at_ms` the time (Unix time, ms).
    """

    topic: str
    topic_id: str
    partition: int
    ranges: tuple[tuple[int, int], ...]
    state: MarkState
    plan: str
    actor: str
    at_ms: int
    reason: str | None = None

    def key(self) -> bytes:
        """Return the record key: offsets, plan and state. Compaction never deletes a mark that applies."""
        place = [self.topic, self.topic_id, self.partition, self.ranges[0][0], self.ranges[-1][1], self.plan]
        return json.dumps([*place, self.state.value], separators=(",", ":")).encode()

    def value(self) -> bytes:
        """Return the record value."""
        content = {
            "topic": self.topic,
            "topic_id": self.topic_id,
            "partition": self.partition,
            "ranges": self.ranges,
            "state": self.state.value,
            "reason": self.reason,
            "plan": self.plan,
            "actor": self.actor,
            "at_ms": self.at_ms,
        }
        return json.dumps(content, separators=(",", ":")).encode()


def mark_of(value: bytes | None) -> Mark | None:
    """Return the mark in a record value, or None if the value is not a mark."""
    try:
        content: dict[str, Any] = json.loads(value or b"")
        ranges = tuple((int(first), int(end)) for first, end in content["ranges"])
        partition, at_ms = int(content["partition"]), int(content["at_ms"])
        topic, topic_id, plan, actor = (str(content[name]) for name in ("topic", "topic_id", "plan", "actor"))
        state = MarkState(content["state"])
        return Mark(topic, topic_id, partition, ranges, state, plan, actor, at_ms, content.get("reason"))
    except (ValueError, KeyError, TypeError):
        return None


def ranges_of_offsets(offsets: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return ascending offsets as ranges."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return tuple(found)


class _Ranges:
    """A set of offsets, stored as ranges that neither overlap nor touch."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, first: int, end: int) -> None:
        at = max(0, bisect_right(self._ranges, (first, first)) - 1)
        while at < len(self._ranges) and self._ranges[at][0] <= end:
            if self._ranges[at][1] < first:
                at += 1
                continue
            known = self._ranges.pop(at)
            first, end = min(first, known[0]), max(end, known[1])
        insort(self._ranges, (first, end))

    def __contains__(self, offset: int) -> bool:
        at = bisect_right(self._ranges, (offset, 2**63)) - 1
        return at >= 0 and offset < self._ranges[at][1]


class Marks:
    """The marks of one dead-letter topic, stored in memory as ranges by state and plan."""

    def __init__(self, topic_id: str, marks: Sequence[Mark] = ()) -> None:
        self._topic_id = topic_id
        self._ranges: dict[tuple[MarkState, str], dict[int, _Ranges]] = {}
        for mark in marks:
            self.add(mark)

    def add(self, mark: Mark) -> None:
        """Add a mark. Ignores a mark of a deleted topic with the same name."""
        if mark.topic_id != self._topic_id:
            return
        of_plan = self._ranges.setdefault((mark.state, mark.plan), defaultdict(_Ranges))
        for first, end in mark.ranges:
            of_plan[mark.partition].add(first, end)

    def state_of(self, partition: int, offset: int, except_plan: str = "") -> MarkState | None:
        """Return a letter's state, or None if the letter is open. Ignores marks of the plan `except_plan`."""
        for (state, plan), of_plan in self._ranges.items():
            if plan != except_plan and partition in of_plan and offset in of_plan[partition]:
                return state
        return None
