"""Many equal things, few log lines: the first of a kind at once, then one line an interval with the count."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

_MAX_KINDS = 10_000


@dataclass(slots=True)
class _Kind:
    since: float
    count: int
    records: int
    latest: dict[str, Any]


class Aggregator:
    """Calls `emit(details, times, records)`; `times` counts what has happened since the line before.

    Kinds are bounded; beyond the bound everything is one kind. The time is handed in (seconds, monotonic).
    """

    def __init__(self, interval_seconds: float, emit: Callable[[dict[str, Any], int, int], None]) -> None:
        self._interval = interval_seconds
        self._emit = emit
        self._kinds: dict[Hashable, _Kind] = {}

    def note(self, key: Hashable, details: dict[str, Any], records: int, now: float) -> None:
        """Something of kind `key` happened; `details` go into the line."""
        if key not in self._kinds and len(self._kinds) >= _MAX_KINDS:
            key, details = None, dict.fromkeys(details, "many different")
        kind = self._kinds.get(key)
        if kind is None:
            self._kinds[key] = _Kind(now, 0, 0, details)
            self._emit(details, 1, records)
            return
        kind.count += 1
        kind.records += records
        kind.latest = details

    def sweep(self, now: float) -> None:
        """Write what has gathered for an interval; forget kinds that have gone quiet. Call it now and then."""
        for key, kind in list(self._kinds.items()):
            if now - kind.since < self._interval:
                continue
            if kind.count == 0:
                del self._kinds[key]
                continue
            self._emit(kind.latest, kind.count, kind.records)
            kind.since, kind.count, kind.records = now, 0, 0

    def flush(self) -> None:
        """Write everything that has gathered; the end is near."""
        self.sweep(float("inf"))
