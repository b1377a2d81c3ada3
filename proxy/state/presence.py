"""What a proxy announces about itself, and what the announcements of all proxies say together."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.proxy.reporting.bounded_text import cut, printable
from sluicegate.proxy.state.bounded_read import StoredRecord
from sluicegate.proxy.state.change import VERSION, UnreadableChange, content_of, text_of, time_of

EVERY_SECONDS = 5.0
STALE_MS = 15_000
FORGOTTEN_MS = 600_000
CLOCK_OFF_MS = 5_000
"""A clock this far from the broker's is named; writing a record takes less."""
MOST_BYTES = 4 << 10
_MOST_CONDITIONS = 10
_CONDITION_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Presence:
    """One announcement. `instance`: of this process, `name`: the same after a restart. `time_ms`: by the proxy's clock.

    `admin`: the address of its admin endpoint. `policies`: a digest of its policies. `counters`: since its start.
    """

    name: str
    instance: str
    started_ms: int
    time_ms: int
    admin: str
    version: str
    policies: str
    state: str
    conditions: tuple[str, ...]
    counters: Mapping[str, int]


def encode(presence: Presence) -> bytes:
    """Return the value of its record, a JSON object."""
    content = {"version": VERSION, **_as_json(presence), "conditions": presence.conditions[:_MOST_CONDITIONS]}
    return json.dumps(content, separators=(",", ":")).encode()


def decode(value: bytes | None) -> Presence:
    """Return the announcement in a record's value. Raises UnreadableChange."""
    content = content_of(value, MOST_BYTES)
    try:
        conditions = tuple(str(cut(printable(each), _CONDITION_CHARACTERS)) for each in content["conditions"])
        counters = {str(cut(printable(name), 50)): time_of(content["counters"], name) for name in content["counters"]}
        return Presence(
            text_of(content, "name"),
            text_of(content, "instance"),
            time_of(content, "started_ms"),
            time_of(content, "time_ms"),
            text_of(content, "admin"),
            text_of(content, "sluicegate"),
            text_of(content, "policies"),
            text_of(content, "state"),
            conditions[:_MOST_CONDITIONS],
            counters,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnreadableChange(f"not an announcement: {type(error).__name__}") from None


@dataclass(slots=True)
class FleetMember:
    """The newest announcement of one process. Times of the broker, Unix time in ms; `first_ms`: of the first one read.

    `clock_off_ms`: how far its clock is ahead; None: the broker does not set the topic's times.
    """

    presence: Presence
    first_ms: int
    last_ms: int
    clock_off_ms: int | None


@dataclass(frozen=True, slots=True)
class FleetView:
    """All proxies of a cluster: `members` by name, and `findings` about them. `now_ms`: the broker's time."""

    now_ms: int
    members: tuple[FleetMember, ...]
    findings: tuple[str, ...]

    def is_stale(self, member: FleetMember) -> bool:
        """Return whether a member has announced nothing for 15 s."""
        return self.now_ms - member.last_ms > STALE_MS

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the API."""
        return {
            "time_ms": self.now_ms,
            "findings": list(self.findings),
            "proxies": [
                {
                    **_as_json(each.presence),
                    "seen_ms": each.last_ms,
                    "is_stale": self.is_stale(each),
                    "clock_off_ms": each.clock_off_ms,
                }
                for each in self.members
            ],
        }


def _as_json(presence: Presence) -> dict[str, Any]:
    return {
        "name": presence.name,
        "instance": presence.instance,
        "started_ms": presence.started_ms,
        "time_ms": presence.time_ms,
        "admin": presence.admin,
        "sluicegate": presence.version,
        "policies": presence.policies,
        "state": presence.state,
        "conditions": list(presence.conditions),
        "counters": dict(presence.counters),
    }


def fleet_of(records: Iterable[StoredRecord], own_instance: str, now_ms: int) -> FleetView:
    """Return the view of announcements, in the order of their partition. `now_ms`: by the reader's clock, which its own
    announcement corrects.
    """
    found: dict[str, FleetMember] = {}
    for record in records:
        try:
            presence = decode(record.value)
        except UnreadableChange:  # somebody else's record, or one of another version
            continue
        off = presence.time_ms - record.time_ms if record.is_broker_time else None
        known = found.get(presence.instance)
        first_ms = record.time_ms if known is None else known.first_ms
        found[presence.instance] = FleetMember(presence, first_ms, record.time_ms, off)
    own = found.get(own_instance)
    if own is not None and own.clock_off_ms is not None:
        now_ms -= own.clock_off_ms
    recent = [each for each in found.values() if now_ms - each.last_ms <= FORGOTTEN_MS]
    members = sorted(_without_restarted(recent), key=lambda each: (each.presence.name, each.first_ms))
    view = FleetView(now_ms, tuple(members), ())
    fresh = [each for each in members if not view.is_stale(each)]
    return FleetView(now_ms, tuple(members), tuple(_findings(fresh)))


def _without_restarted(every: list[FleetMember]) -> Iterator[FleetMember]:
    """Yield the members without processes that another one of the same name has followed."""
    begun: dict[str, int] = {}
    for each in every:
        begun[each.presence.name] = max(each.first_ms, begun.get(each.presence.name, 0))
    for each in every:
        if begun[each.presence.name] <= each.last_ms:
            yield each


def _findings(fresh: list[FleetMember]) -> Iterator[str]:
    yield from _differing("versions", {each.presence.name: each.presence.version for each in fresh})
    yield from _differing("policies", {each.presence.name: each.presence.policies for each in fresh})
    for each in fresh:
        if each.clock_off_ms is not None and abs(each.clock_off_ms) > CLOCK_OFF_MS:
            yield f"the clock of {each.presence.name} is {each.clock_off_ms / 1000:+.0f} s off the broker's"
    names = [each.presence.name for each in fresh]
    for name in sorted({name for name in names if names.count(name) > 1}):
        admins = ", ".join(each.presence.admin for each in fresh if each.presence.name == name)
        yield f"{name} is the name of {names.count(name)} running proxies: {admins}"


def _differing(what: str, values: Mapping[str, str]) -> Iterator[str]:
    by_value: dict[str, list[str]] = {}
    for name, value in sorted(values.items()):
        by_value.setdefault(value, []).append(name)
    if len(by_value) > 1:
        shown = "; ".join(f"{value}: {_few(names)}" for value, names in sorted(by_value.items()))
        yield f"{len(by_value)} {what}: {shown}"


def _few(names: list[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
