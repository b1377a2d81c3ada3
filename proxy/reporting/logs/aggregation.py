"""Aggregates equal reports into few log lines.

`Aggregator` writes the first report of a kind at once, then one line an interval with the count. Kinds and lines are
bounded whatever clients invent, and the counts stay complete: with too many kinds, new ones are counted under a wider
one (many clients of one topic); with too many lines, some are delayed and have higher counts. `OnceAMinute` is the
simple form, for any thread.
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
    """A kind that includes many others: its key, and the details that differ among them."""

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
    """Calls `emit(details, times, records)` for each line; `times` counts the reports since the line before.

    `widen` returns the kind that a key is counted under if there are too many kinds. Times are in seconds, monotonic.
    At most 200 lines at once and 2,000 a minute.
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
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()  # least recently used first
        self._wide: dict[Hashable, _Kind] = {}
        self._lines = float(LINES_AT_ONCE)
        self._lines_at = float("-inf")

    def note(self, key: Hashable, records: int, now: float, details: Callable[..., Details], *about: Any) -> None:
        """Count a report of kind `key`; `details(*about)` is only called if the line needs it."""
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
        """Write the lines that are due and drop quiet kinds; called every few seconds."""
        for kinds in (self._wide, self._kinds):
            for key, kind in list(kinds.items()):
                if now - kind.logged_at < self._interval:
                    continue
                if kind.count == 0:
                    del kinds[key]
                elif self._may_log(now, 0):
                    self._log_kind(kind, now)

    def settle(self, is_over: Callable[[Any], bool]) -> None:
        """Write the pending lines of the kinds whose key is over, and forget these: what they report has ended."""
        for kinds in (self._wide, self._kinds):
            for key in [key for key in kinds if is_over(key)]:
                kind = kinds.pop(key)
                if kind.count:
                    self._log_kind(kind, kind.used_at)

    def flush(self) -> None:
        """Write everything that is pending, before shutdown."""
        for kinds in (self._wide, self._kinds):
            for kind in kinds.values():
                if kind.count:
                    self._log_kind(kind, float("inf"))
            kinds.clear()

    def _new(self, key: Hashable, now: float) -> _Kind | None:
        """Return a new kind, in place of a quiet one if there are too many; None if none is quiet."""
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
        """Return whether a line may be written now and `kept` lines remain for others."""
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
    """Limits reports to one a minute for each kind; the next one has the count of the skipped ones. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.RLock()  # re-entrant: a finaliser may report during a report
        self._kinds: dict[Hashable, tuple[float, int]] = {}

    def due(self, kind: Hashable) -> int | None:
        """Count one occurrence. Return how often it occurred since the last report if one is due now, else None."""
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
        """Return `kind` if a quiet kind can be dropped for it, else the shared kind None."""
        quiet = [old for old, (reported, _) in self._kinds.items() if now - reported >= _MINUTE_SECONDS]
        unreported = sum(self._kinds.pop(old)[1] for old in quiet)
        if unreported:
            reported, times = self._kinds.get(None, (float("-inf"), 0))
            self._kinds[None] = (reported, times + unreported)
        return kind if quiet else None
