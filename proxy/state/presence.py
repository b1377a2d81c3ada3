"""A proxy's announcement about itself, as a record in the presence topic."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.proxy.reporting.bounded_text import cut, printable
from sluicegate.proxy.state.change import VERSION, UnreadableChange, content_of, text_of, time_of

EVERY_SECONDS = 5.0
MOST_BYTES = 4 << 10
_MOST_CONDITIONS = 10
_CONDITION_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Presence:
    """One announcement.

    `instance` identifies the process, whereas `name` is the same after a restart. `time_ms` is from the proxy's clock.
    `admin` is the address of its admin endpoint. `policies` is a digest of its policies. `counters` contains counts
    since its start.
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
    """Return an announcement's record value, a JSON object."""
    content = {"version": VERSION, **as_json(presence), "conditions": presence.conditions[:_MOST_CONDITIONS]}
    return json.dumps(content, separators=(",", ":")).encode()


def decode(value: bytes | None) -> Presence:
    """Return the announcement in a record value. Raises UnreadableChange."""
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


def as_json(presence: Presence) -> dict[str, Any]:
    """Return the JSON object for the record, without its version."""
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
