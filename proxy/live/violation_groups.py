"""Counts violations by client, topic, reason and outcome, in bounded memory whatever clients call themselves.

When all places are taken, the client that has the most gives one up: the one that was broken least among those not seen
for longest. So names that are invented for one request each push out neither other clients nor what was long broken.
"""

from dataclasses import dataclass

from sluicegate.proxy.live.live_state import ViolationGroupState
from sluicegate.proxy.reporting.events.violation_event import Event, event_of
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots

MAX_GROUPS = 300
_SHOWN_EVERY_MS = 100

Key = tuple[str, str | None, str | None, str]
"""What became of the batch, whose it was, its topic, and what is wrong with it."""


@dataclass(slots=True)
class ViolationGroup:
    """Batches and records that broke one thing, from `first_ms` to `last_ms`; `example` is one of the newest events."""

    first_ms: int
    batches: int = 0
    bad_records: int = 0
    last_ms: int = 0
    example: Event | None = None
    shown_ms: int = 0


class ViolationGroups:
    """Told of every event. `other`: batches of those that have no place any more."""

    def __init__(self, max_offences: int = MAX_GROUPS) -> None:
        self._known: dict[Key, ViolationGroup] = {}
        self._places: FairLabelSlots[Key] = FairLabelSlots(max_offences, lambda key: self._known[key].batches)
        self.other = 0

    def add(self, key: Key, bad_records: int, now_ms: int, owner: str) -> ViolationGroup | None:
        """Count one more batch of `owner` (`ClientDetails.owner`).

        Return the group if it needs a new example: at most one in 100 ms.
        """
        group = self._known.get(key)
        if group is None:
            if self._places.are_taken:
                self._make_room(owner)
            self._places.add(key, owner)
            group = self._known[key] = ViolationGroup(now_ms)
        else:
            self._places.use(key, owner)
        group.batches += 1
        group.bad_records += bad_records
        group.last_ms = now_ms
        if group.example is not None and 0 <= now_ms - group.shown_ms < _SHOWN_EVERY_MS:
            return None
        group.shown_ms = now_ms
        return group

    def state(self, most: int) -> list[ViolationGroupState]:
        """Those that are known, the worst first; may be asked from another thread."""
        known = sorted(self._known.items(), key=lambda item: -item[1].batches)[:most]
        return [_state_of(key, group) for key, group in known]

    def _make_room(self, owner: str) -> None:
        replaced = self._places.of_others(owner) or self._places.of_its_own(owner)
        assert replaced is not None
        self._places.drop(replaced)
        self.other += self._known.pop(replaced).batches


def _state_of(key: Key, group: ViolationGroup) -> ViolationGroupState:
    mode, client_id, topic, reason = key
    return {
        "client_id": client_id,
        "topic": topic,
        "reason": str(reason),
        "mode": mode,
        "batches": group.batches,
        "bad_records": group.bad_records,
        "first_ms": group.first_ms,
        "last_ms": group.last_ms,
        "example": {} if group.example is None else event_of(group.example),
    }
