"""Who breaks what where, and how often: bounded, whatever clients call themselves.

When all places are taken, the client that has the most gives one up: the one that was broken least among those not seen
for longest. So names that are invented for one request each push out neither other clients nor what was long broken.
"""

from dataclasses import dataclass

from sluicegate.proxy.live.live_state import OffenceState
from sluicegate.proxy.reporting.events.violation_event import Event, event_of
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairPlaces

MAX_OFFENCES = 300
_SHOWN_EVERY_MS = 100

Key = tuple[str, str | None, str | None, str]
"""What became of the batch, whose it was, its topic, and what is wrong with it."""


@dataclass(slots=True)
class Offence:
    """Batches and records that broke one thing, from `first_ms` to `last_ms`; `example` is one of the newest events."""

    first_ms: int
    batches: int = 0
    bad_records: int = 0
    last_ms: int = 0
    example: Event | None = None
    shown_ms: int = 0


class Offences:
    """Told of every event. `other`: batches of those that have no place any more."""

    def __init__(self, max_offences: int = MAX_OFFENCES) -> None:
        self._known: dict[Key, Offence] = {}
        self._places: FairPlaces[Key] = FairPlaces(max_offences, lambda key: self._known[key].batches)
        self.other = 0

    def add(self, key: Key, bad_records: int, now_ms: int, owner: str) -> Offence | None:
        """One more batch, of `owner` (`Who.owner`); the offence where an example is wanted: not again for a tenth of a
        second.
        """
        offence = self._known.get(key)
        if offence is None:
            if self._places.are_taken:
                self._make_room(owner)
            self._places.add(key, owner)
            offence = self._known[key] = Offence(now_ms)
        else:
            self._places.use(key, owner)
        offence.batches += 1
        offence.bad_records += bad_records
        offence.last_ms = now_ms
        if offence.example is not None and 0 <= now_ms - offence.shown_ms < _SHOWN_EVERY_MS:
            return None
        offence.shown_ms = now_ms
        return offence

    def state(self, most: int) -> list[OffenceState]:
        """Those that are known, the worst first; may be asked from another thread."""
        known = sorted(self._known.items(), key=lambda item: -item[1].batches)[:most]
        return [_state_of(key, offence) for key, offence in known]

    def _make_room(self, owner: str) -> None:
        replaced = self._places.of_others(owner) or self._places.of_its_own(owner)
        assert replaced is not None
        self._places.drop(replaced)
        self.other += self._known.pop(replaced).batches


def _state_of(key: Key, offence: Offence) -> OffenceState:
    mode, client_id, topic, reason = key
    return {
        "client_id": client_id,
        "topic": topic,
        "reason": str(reason),
        "mode": mode,
        "batches": offence.batches,
        "bad_records": offence.bad_records,
        "first_ms": offence.first_ms,
        "last_ms": offence.last_ms,
        "example": {} if offence.example is None else event_of(offence.example),
    }
