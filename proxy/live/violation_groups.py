"""Counts violations by client, topic, reason and outcome, in bounded memory for any number of client ids.

If all slots are taken, the client with the most groups loses one: of its least recently seen groups, the one with the
fewest batches. So a client that invents an id for each request displaces neither other clients nor older violations.
"""

from dataclasses import dataclass
from typing import NamedTuple

from sluicegate.proxy.live.live_state import ViolationGroupState
from sluicegate.proxy.reporting.events.violation_event import Event, event_of
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots
from sluicegate.validation.outcome import Change, Copies, Outcome

MAX_GROUPS = 300
_SHOWN_EVERY_MS = 100


class GroupKey(NamedTuple):
    """The properties that a group's batches have in common.

    `mode`, `changes` and `copies` have the same meaning as in a violation event.
    """

    outcome: Outcome
    mode: str
    changes: tuple[Change, ...]
    copies: Copies | None
    client_id: str | None
    topic: str | None
    reason: str


@dataclass(slots=True)
class ViolationGroup:
    """Batches with one violation, from `first_ms` to `last_ms`. `example` is one of the newest events."""

    first_ms: int
    batches: int = 0
    bad_records: int = 0
    last_ms: int = 0
    example: Event | None = None
    shown_ms: int = 0


class ViolationGroups:
    """Counts every event. `other` is the number of batches in replaced groups."""

    def __init__(self, max_groups: int = MAX_GROUPS) -> None:
        self._known: dict[GroupKey, ViolationGroup] = {}
        self._slots: FairLabelSlots[GroupKey] = FairLabelSlots(
            max_groups, self._forget, lambda key: self._known[key].batches
        )
        self.other = 0

    def add(self, key: GroupKey, bad_records: int, now_ms: int, holder: str) -> ViolationGroup | None:
        """Count one more batch of `holder` (`ClientDetails.holder`).

        Return the group if it needs a new example, at most every 100 ms, and None otherwise.
        """
        self._slots.take_any(key, holder)
        group = self._known.get(key)
        if group is None:
            group = self._known[key] = ViolationGroup(now_ms)
        group.batches += 1
        group.bad_records += bad_records
        group.last_ms = now_ms
        if group.example is not None and 0 <= now_ms - group.shown_ms < _SHOWN_EVERY_MS:
            return None
        group.shown_ms = now_ms
        return group

    def state(self, most: int) -> list[ViolationGroupState]:
        """Return the `most` groups with the most batches. Thread-safe."""
        known = sorted(self._known.items(), key=lambda item: -item[1].batches)[:most]
        return [_state_of(key, group) for key, group in known]

    def _forget(self, key: GroupKey) -> None:
        self.other += self._known.pop(key).batches


def _state_of(key: GroupKey, group: ViolationGroup) -> ViolationGroupState:
    return {
        "client_id": key.client_id,
        "topic": key.topic,
        "reason": str(key.reason),
        "outcome": key.outcome.value,
        "mode": key.mode,
        "changes": [change.value for change in key.changes],
        "copies": None if key.copies is None else key.copies.value,
        "batches": group.batches,
        "bad_records": group.bad_records,
        "first_ms": group.first_ms,
        "last_ms": group.last_ms,
        "example": {} if group.example is None else event_of(group.example),
    }
