"""Combines all proxies' announcements, and finds proxies that are stale or differ from the others."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sluicegate.proxy.state.bounded_read import TimedValue
from sluicegate.proxy.state.change import UnreadableChange
from sluicegate.proxy.state.presence import Presence, as_json, decode

STALE_MS = 15_000
FORGOTTEN_MS = 600_000
CLOCK_OFF_MS = 5_000
"""A proxy is reported if its clock differs from the broker's by this much. Writing a record takes less time."""
_RISING = ("produce_requests", "accepted_records", "violations")


@dataclass(slots=True)
class FleetMember:
    """One process's newest announcement.

    Times are the broker's (Unix time, ms). `first_ms` is the time of the first announcement that was read.
    `clock_off_ms` is how far the process's clock is ahead, or None if the broker does not set the times in this topic.
    `rates` contains the increase per second of each counter since the previous announcement, and is empty after the
    first one.
    """

    presence: Presence
    first_ms: int
    last_ms: int
    clock_off_ms: int | None
    rates: Mapping[str, float] = field(default_factory=dict)


class FindingCode(StrEnum):
    """A kind of finding."""

    VERSIONS_DIFFER = "versions_differ"
    POLICIES_DIFFER = "policies_differ"
    CLOCK_OFF = "clock_off"
    NAME_USED_TWICE = "name_used_twice"


@dataclass(frozen=True, slots=True)
class FleetFinding:
    """A difference between proxies that should agree. `text` names the proxies."""

    code: FindingCode
    text: str


@dataclass(frozen=True, slots=True)
class FleetView:
    """All proxies of a cluster.

    `members` are sorted by name, and `findings` are about them. `now_ms` is the broker's time.
    """

    now_ms: int
    members: tuple[FleetMember, ...]
    findings: tuple[FleetFinding, ...]

    def is_stale(self, member: FleetMember) -> bool:
        """Return whether a member has announced nothing for 15 s."""
        return self.now_ms - member.last_ms > STALE_MS

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for the API."""
        return {
            "time_ms": self.now_ms,
            "findings": [{"code": each.code.value, "text": each.text} for each in self.findings],
            "proxies": [
                {
                    **as_json(each.presence),
                    "seen_ms": each.last_ms,
                    "is_stale": self.is_stale(each),
                    "clock_off_ms": each.clock_off_ms,
                    "rates": dict(each.rates),
                }
                for each in self.members
            ],
        }


def fleet_of(records: Iterable[TimedValue], own_instance: str, now_ms: int) -> FleetView:
    """Create the view from announcements, which are in their partition's order.

    `now_ms` is from the reader's clock, and is corrected by the reader's own announcement.
    """
    found: dict[str, FleetMember] = {}
    for record in records:
        try:
            presence = decode(record.value)
        except UnreadableChange:  # a record of another program or another version
            continue
        off = presence.time_ms - record.time_ms if record.is_broker_time else None
        known = found.get(presence.instance)
        if known is None:
            found[presence.instance] = FleetMember(presence, record.time_ms, record.time_ms, off)
        else:
            rates = _rates(known, presence, record.time_ms)
            found[presence.instance] = FleetMember(presence, known.first_ms, record.time_ms, off, rates)
    own = found.get(own_instance)
    if own is not None and own.clock_off_ms is not None:
        now_ms -= own.clock_off_ms
    recent = [each for each in found.values() if now_ms - each.last_ms <= FORGOTTEN_MS]
    members = sorted(_without_restarted(recent), key=lambda each: (each.presence.name, each.first_ms))
    view = FleetView(now_ms, tuple(members), ())
    fresh = [each for each in members if not view.is_stale(each)]
    return FleetView(now_ms, tuple(members), tuple(_findings(fresh)))


def _without_restarted(every: list[FleetMember]) -> Iterator[FleetMember]:
    """Yield the members without the processes that a newer process with the same name has replaced."""
    begun: dict[str, int] = {}
    for each in every:
        begun[each.presence.name] = max(each.first_ms, begun.get(each.presence.name, 0))
    for each in every:
        if begun[each.presence.name] <= each.last_ms:
            yield each


def _rates(before: FleetMember, presence: Presence, time_ms: int) -> dict[str, float]:
    seconds = max(1, time_ms - before.last_ms) / 1000
    old, new = before.presence.counters, presence.counters
    return {name: max(0, new[name] - old[name]) / seconds for name in _RISING if name in new and name in old}


def _findings(fresh: list[FleetMember]) -> Iterator[FleetFinding]:
    yield from _differing(
        FindingCode.VERSIONS_DIFFER, "versions", {each.presence.name: each.presence.version for each in fresh}
    )
    yield from _differing(
        FindingCode.POLICIES_DIFFER, "policies", {each.presence.name: each.presence.policies for each in fresh}
    )
    for each in fresh:
        if each.clock_off_ms is not None and abs(each.clock_off_ms) > CLOCK_OFF_MS:
            text = f"the clock of {each.presence.name} is {each.clock_off_ms / 1000:+.0f} s off the broker's"
            yield FleetFinding(FindingCode.CLOCK_OFF, text)
    names = [each.presence.name for each in fresh]
    for name in sorted({name for name in names if names.count(name) > 1}):
        admins = ", ".join(each.presence.admin for each in fresh if each.presence.name == name)
        text = f"{name} is the name of {names.count(name)} running proxies: {admins}"
        yield FleetFinding(FindingCode.NAME_USED_TWICE, text)


def _differing(code: FindingCode, what: str, values: Mapping[str, str]) -> Iterator[FleetFinding]:
    by_value: dict[str, list[str]] = {}
    for name, value in sorted(values.items()):
        by_value.setdefault(value, []).append(name)
    if len(by_value) > 1:
        shown = "; ".join(f"{value}: {_few(names)}" for value, names in sorted(by_value.items()))
        yield FleetFinding(code, f"{len(by_value)} {what}: {shown}")


def _few(names: list[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
