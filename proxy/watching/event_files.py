"""Reads files of violation events and counts them by client and reason (docs/violations.md)."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sluicegate.proxy.live.live_state import ViolationGroupState

_MAX_GROUPS = 10_000
_MAX_LINE = 16 << 20
_KNOWN_VERSION = 1

_Key = tuple[str, str | None, str]


class EventsUnreadable(Exception):
    """A file of events cannot be read; the text says which and why."""


class TopicViolations:
    """Adds events up. `skipped`: lines that are no events; `other`: batches beyond the ten thousand kinds it keeps."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._found: dict[_Key, ViolationGroupState] = {}
        self.skipped = 0
        self.other = 0

    def read(self, files: Sequence[Path]) -> list[ViolationGroupState]:
        """What the files tell of the topic, the worst first. Raises EventsUnreadable."""
        for file in files:
            for line in _lines_of(file):
                self._take(line)
        return sorted(self._found.values(), key=lambda group: -group["batches"])

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            event: Any = json.loads(line)
            if event["topic"] != self._topic or event["version"] != _KNOWN_VERSION:
                return
            self._add(event, round(datetime.fromisoformat(event["time"]).timestamp() * 1000))
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            self.skipped += 1  # a piece of a line that was being written when its process was killed

    def _add(self, event: dict[str, Any], ms: int) -> None:
        key = (str(event.get("mode", "reject")), event["client_id"], str(event["reason"]))
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MAX_GROUPS:
                self.other += 1
                return
            found = self._found[key] = {
                "client_id": event["client_id"],
                "topic": self._topic,
                "reason": key[2],
                "mode": key[0],
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
