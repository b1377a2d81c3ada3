"""Counts violation events by client, topic, owner, reason and rule."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sluicegate.proxy.live.live_state import ViolationGroupState
from sluicegate.validation.event_schema import SCHEMA_VERSION, event_in

_MAX_GROUPS = 10_000


class RecordedGroup(ViolationGroupState):
    """One client's violations in one topic for one reason and rule.

    `rule` is the first rule that each batch violates.
    """

    rule: str | None


@dataclass(frozen=True, slots=True)
class EventSelection:
    """Selects the events to count.

    A field that is None selects all. `owner` is the team of the topic or the client. `rule` is a rule or a reason.
    """

    topic: str | None = None
    client: str | None = None
    owner: str | None = None
    rule: str | None = None

    def includes(self, event: dict[str, Any]) -> bool:
        """Return whether an event is counted. Raises TypeError and KeyError if the object is not an event."""
        return (
            self.topic in (None, event["topic"])
            and self.client in (None, event["client_id"])
            and (self.owner is None or self.owner in _teams_of(event))
            and self.rule in (None, event["reason"], event.get("rule"))
        )


class ViolationCounts:
    """Counts events. If `ids` is given, events with the same id are counted once.

    `skipped` is the number of lines that are not events. `other` is the number of batches beyond 10,000 groups.
    `first_ms` is the time of the oldest event, whether or not it is selected.
    """

    def __init__(self, wanted: EventSelection, ids: set[str] | None = None) -> None:
        self._wanted = wanted
        self._found: dict[tuple[object, ...], RecordedGroup] = {}
        self._ids = ids
        self.skipped = 0
        self.other = 0
        self.first_ms: int | None = None

    def take(self, line: bytes) -> None:
        """Count the event in a line or a record."""
        try:
            event = event_in(json.loads(line))
            if event["schema_version"] != SCHEMA_VERSION or self._is_repeated(event["id"]):
                return
            ms = round(datetime.fromisoformat(event["time"]).timestamp() * 1000)
            if self._wanted.includes(event):
                self._add(event, ms)
            self.first_ms = ms if self.first_ms is None else min(ms, self.first_ms)
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError, AttributeError):
            self.skipped += 1  # for example, a line that is incomplete because the process was killed

    def _is_repeated(self, event_id: str) -> bool:
        if self._ids is None:
            return False
        is_repeated = event_id in self._ids
        self._ids.add(event_id)
        return is_repeated

    def groups(self) -> list[RecordedGroup]:
        """Return the groups, most batches first."""
        return sorted(self._found.values(), key=lambda group: -group["batches"])

    def _add(self, event: dict[str, Any], ms: int) -> None:
        rule = None if event.get("rule") is None else str(event["rule"])
        effects = (str(event["outcome"]), str(event["mode"]), *map(str, event["changes"]), str(event["copies"]))
        key = (effects, event["client_id"], event["topic"], str(event["reason"]), rule, _teams_of(event))
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MAX_GROUPS:
                self.other += 1
                return
            found = self._found[key] = {
                "client_id": event["client_id"],
                "topic": event["topic"],
                "reason": str(event["reason"]),
                "rule": rule,
                "outcome": event["outcome"],
                "mode": event["mode"],
                "changes": event["changes"],
                "copies": event["copies"],
                "batches": 0,
                "bad_records": 0,
                "first_ms": ms,
                "last_ms": ms,
                "example": event,
            }
        found["batches"] += 1
        found["bad_records"] += int(event["bad_records"])
        found["first_ms"] = min(found["first_ms"], ms)
        if ms >= found["last_ms"]:
            found["last_ms"], found["example"] = ms, event


def _teams_of(event: dict[str, Any]) -> tuple[str | None, ...]:
    return tuple((event.get(key) or {}).get("team") for key in ("owner", "client_owner"))
