"""Counts the violations of a topic by client and reason, from event files, and formats them for `sluicegate who`."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sluicegate.proxy.live.live_state import ViolationGroupState
from sluicegate.proxy.watching.formatting import (
    client_of,
    client_owner_of,
    diagnosis,
    iso_time,
    outcome_in_words,
    printable_name,
)
from sluicegate.validation.event_schema import SCHEMA_VERSION, event_in

_MAX_GROUPS = 10_000
_MAX_LINE = 16 << 20


_Key = tuple[tuple[str, ...], str | None, str]


class EventsUnreadable(Exception):
    """A file of events cannot be read; the text has the file and the reason."""


class TopicViolations:
    """Counts events. `skipped`: lines that are not events; `other`: batches beyond 10,000 groups."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._found: dict[_Key, ViolationGroupState] = {}
        self.skipped = 0
        self.other = 0

    def read(self, files: Sequence[Path]) -> list[ViolationGroupState]:
        """Return the groups of the topic, most batches first. Raises EventsUnreadable."""
        for file in files:
            for line in _lines_of(file):
                self._take(line)
        return sorted(self._found.values(), key=lambda group: -group["batches"])

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            event = event_in(json.loads(line))
            if event["topic"] != self._topic or event["schema_version"] != SCHEMA_VERSION:
                return
            self._add(event, round(datetime.fromisoformat(event["time"]).timestamp() * 1000))
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            self.skipped += 1  # for example a line cut off when its process was killed

    def _add(self, event: dict[str, Any], ms: int) -> None:
        did = (str(event["outcome"]), str(event["mode"]), *map(str, event["changes"]), str(event["copies"]))
        key = (did, event["client_id"], str(event["reason"]))
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MAX_GROUPS:
                self.other += 1
                return
            found = self._found[key] = {
                "client_id": event["client_id"],
                "topic": self._topic,
                "reason": key[2],
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


def _lines_of(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as content:
            while line := content.readline(_MAX_LINE):
                yield line
    except OSError as error:
        raise EventsUnreadable(f"{file} cannot be read: {error.strerror}") from error


def lines_about(topic: str, violation_groups: Sequence[ViolationGroupState]) -> Iterator[str]:
    """Yield the lines of each client, most batches first."""
    by_client: dict[str | None, list[ViolationGroupState]] = {}
    for group in violation_groups:
        by_client.setdefault(group["client_id"], []).append(group)
    if not by_client:
        yield f"{printable_name(topic)}: no violations recorded"
        return
    since = min(group["first_ms"] for group in violation_groups)
    clients = "1 client" if len(by_client) == 1 else f"{len(by_client)} clients"
    yield f"{printable_name(topic)}: {clients} with violations since {iso_time(since)}"
    spared = [group for group in violation_groups if group["example"].get("enforced") is False]
    if spared:
        batches, of = sum(group["batches"] for group in spared), len({group["client_id"] for group in spared})
        yield f"  full enforcement would also reject or fix {batches:,} batches, of {of} of these clients (enforce)"
    for client_id, found in sorted(by_client.items(), key=lambda item: -sum(one["batches"] for one in item[1])):
        newest = max(found, key=lambda one: one["last_ms"])
        owner = client_owner_of(newest["example"])
        yield f"{printable_name(client_id)} ({client_of(newest['example'])}){f', owner: {owner}' if owner else ''}"
        for group in found:
            yield from _group_lines(group)


def _group_lines(group: ViolationGroupState) -> Iterator[str]:
    batches = "1 batch" if group["batches"] == 1 else f"{group['batches']:,} batches"
    records = "1 bad record" if group["bad_records"] == 1 else f"{group['bad_records']:,} bad records"
    times = f"{iso_time(group['first_ms'])} to {iso_time(group['last_ms'])}"
    yield f"  {printable_name(group['reason'])}: {batches}, {records}, {times}; {outcome_in_words(group)}"
    yield f"    example: {diagnosis(group['example'])}"
