"""Combines equal reports into few log lines.

`Aggregator` writes the first report of a kind immediately, then one line per interval with the count. Whatever clients
send, the numbers of kinds and lines are limited, and the counts stay complete. If there are too many kinds, new ones
are counted under a wider kind (for example, many clients of one topic). If there are too many lines, some are delayed
and have higher counts. `OnceAMinute` is a simpler form for use from any thread.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_KINDS = 1000
MAX_WIDE_KINDS = 250
MANY = "many different"
LINES_AT_ONCE = 200
LINES_A_SECOND = 30.0
_RESERVED_LINES = LINES_AT_ONCE // 2
_MINUTE_SECONDS = 60.0
_MAX_MINUTE_KINDS = 100
Details = dict[str, Any]


class AggregateKind(NamedTuple):
    """A kind that covers many other kinds. It has a key, and the details that differ among those kinds."""

    key: Hashable
    different: frozenset[str]


_WIDEST = AggregateKind(
    None, frozenset({"client_id", "software", "principal", "client_address", "topic", "reason", "error"})
)


@dataclass(slots=True)
class _Kind:
    logged_at: float
    used_at: float
    different: frozenset[str] = frozenset()
    count: int = 0
    records: int = 0
    details: Details | None = None


class Aggregator:
    """Calls `emit(details, times, records)` for each line.

    `times` is the number of reports since the previous line. If there are too many kinds, `widen` returns the kind
    under which a key is counted. Times are monotonic, in seconds. At most 200 lines are written at once, and 2,000 per
    minute.
    """

    def __init__(
        self,
        interval_seconds: float,
        emit: Callable[[Details, int, int], None],
        widen: Callable[[Any], AggregateKind],
        max_kinds: int = MAX_KINDS,
    ) -> None:
        self._interval = interval_seconds
        self._emit = emit
        self._widen = widen
        self._max_kinds = max_kinds
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()  # the least recently used kind is first
        self._wide: dict[Hashable, _Kind] = {}
        self._lines = float(LINES_AT_ONCE)
        self._lines_at = float("-inf")

    def note(self, key: Hashable, records: int, now: float, details: Callable[..., Details], *about: Any) -> None:
        """Count a report of kind `key`. `details(*about)` is called only if a line is written."""
        kind = self._kinds.get(key)
        if kind is not None:
            self._kinds.move_to_end(key)
        else:
            kind = self._new(key, now) or self._wide_kind(self._widen(key), now)
        kind.used_at = now
        kind.count += 1
        kind.records += records
        if kind.details is None:
            made = details(*about)
            kind.details = made | dict.fromkeys(kind.different & made.keys(), MANY) if kind.different else made
        if now - kind.logged_at >= self._interval and self._may_log(now, _RESERVED_LINES):
            self._log_kind(kind, now)

    def sweep(self, now: float) -> None:
        """Write the lines that are due and drop quiet kinds. Called every few seconds."""
        for kinds in (self._wide, self._kinds):
            for key, kind in list(kinds.items()):
                if now - kind.logged_at < self._interval:
                    continue
                if kind.count == 0:
                    del kinds[key]
                elif self._may_log(now, 0):
                    self._log_kind(kind, now)

    def settle(self, is_over: Callable[[Any], bool]) -> None:
        """Write the pending lines of each kind for whose key `is_over` returns True, and forget that kind."""
        for kinds in (self._wide, self._kinds):
            for key in [key for key in kinds if is_over(key)]:
                kind = kinds.pop(key)
                if kind.count:
                    self._log_kind(kind, kind.used_at)

    def flush(self) -> None:
        """Write all pending lines before shutdown."""
        for kinds in (self._wide, self._kinds):
            for kind in kinds.values():
                if kind.count:
                    self._log_kind(kind, float("inf"))
            kinds.clear()

    def _new(self, key: Hashable, now: float) -> _Kind | None:
        """Return a new kind, which replaces a quiet kind if there are too many. Return None if no kind is quiet."""
        if len(self._kinds) >= self._max_kinds:
            oldest_key, oldest = next(iter(self._kinds.items()))
            if now - oldest.used_at < self._interval or oldest.count:
                return None
            del self._kinds[oldest_key]
        kind = self._kinds[key] = _Kind(float("-inf"), now)
        return kind

    def _wide_kind(self, wider: AggregateKind, now: float) -> _Kind:
        if wider.key not in self._wide and len(self._wide) >= MAX_WIDE_KINDS:
            wider = _WIDEST
        kind = self._wide.get(wider.key)
        if kind is None:
            kind = self._wide[wider.key] = _Kind(float("-inf"), now, wider.different)
        return kind

    def _may_log(self, now: float, kept: int) -> bool:
        """Return whether a line may be written now, if `kept` lines are reserved for other reports."""
        if now > self._lines_at:
            self._lines = min(LINES_AT_ONCE, self._lines + (now - self._lines_at) * LINES_A_SECOND)
            self._lines_at = now
        return self._lines >= 1 + kept

    def _log_kind(self, kind: _Kind, now: float) -> None:
        details, times, records = kind.details or {}, kind.count, kind.records
        kind.logged_at, kind.count, kind.records, kind.details = now, 0, 0, None
        self._lines -= 1
        self._emit(details, times, records)


class OnceAMinute:
    """Limits reports of each kind to one per minute. Each report includes the number of skipped ones. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.RLock()  # reentrant, because a finalizer may report something during a report
        self._kinds: dict[Hashable, tuple[float, int]] = {}

    def due(self, kind: Hashable) -> int | None:
        """Count one occurrence. If a report is due now, return the occurrences since the last
        report, otherwise None.
        """
        now = self._now()
        with self._lock:
            if kind not in self._kinds and len(self._kinds) >= _MAX_MINUTE_KINDS:
                kind = self._kind_for(kind, now)
            reported, times = self._kinds.get(kind, (float("-inf"), 0))
            if now - reported < _MINUTE_SECONDS:
                self._kinds[kind] = (reported, times + 1)
                return None
            self._kinds[kind] = (now, 0)
            return times + 1

    def _kind_for(self, kind: Hashable, now: float) -> Hashable:
        """Return `kind`, or the shared kind None if there is no quiet kind to replace."""
        quiet = [old for old, (reported, _) in self._kinds.items() if now - reported >= _MINUTE_SECONDS]
        unreported = sum(self._kinds.pop(old)[1] for old in quiet)
        if unreported:
            reported, times = self._kinds.get(None, (float("-inf"), 0))
            self._kinds[None] = (reported, times + unreported)
        return kind if quiet else None
