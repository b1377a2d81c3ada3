"""Many equal things, few log lines: the first of a kind at once, then one line an interval with the count.

Whatever clients invent, kinds and lines are bounded and nothing is left out of the counts. When there are too many
kinds, new ones are counted under a wider one (many different clients, but this topic); when too many lines are due,
some wait and tell a higher count.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_KINDS = 1000
MAX_WIDE_KINDS = 250
MANY = "many different"
LINES_AT_ONCE = 200
LINES_A_SECOND = 30.0
_KEPT_FOR_WAITING = LINES_AT_ONCE // 2
Details = dict[str, Any]


class Wider(NamedTuple):
    """A kind that takes in many others: its key, and which details differ among them."""

    key: Hashable
    different: frozenset[str]


_WIDEST = Wider(None, frozenset({"client_id", "software", "principal", "peer", "topic", "reason", "error"}))


@dataclass(slots=True)
class _Kind:
    told_at: float
    used_at: float
    different: frozenset[str] = frozenset()
    count: int = 0
    records: int = 0
    details: Details | None = None


class Aggregator:
    """Calls `emit(details, times, records)`; `times` counts what has happened since the line before.

    `widen` names the kind that a key is counted under when there are too many of its own. The time is handed in
    (seconds, monotonic). At most 200 lines at once and 2,000 a minute.
    """

    def __init__(
        self,
        interval_seconds: float,
        emit: Callable[[Details, int, int], None],
        widen: Callable[[Any], Wider],
        max_kinds: int = MAX_KINDS,
    ) -> None:
        self._interval = interval_seconds
        self._emit = emit
        self._widen = widen
        self._max_kinds = max_kinds
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()  # the one used last stands last
        self._wide: dict[Hashable, _Kind] = {}
        self._lines = float(LINES_AT_ONCE)
        self._lines_at = float("-inf")

    def note(self, key: Hashable, records: int, now: float, details: Callable[..., Details], *about: Any) -> None:
        """Something of kind `key` happened; `details(*about)` goes into the line, and is made only when one is due."""
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
        if now - kind.told_at >= self._interval and self._may_tell(now, _KEPT_FOR_WAITING):
            self._tell(kind, now)

    def sweep(self, now: float) -> None:
        """Write what has gathered for an interval; forget kinds that have gone quiet. Call it every few seconds."""
        for kinds in (self._wide, self._kinds):
            for key, kind in list(kinds.items()):
                if now - kind.told_at < self._interval:
                    continue
                if kind.count == 0:
                    del kinds[key]
                elif self._may_tell(now, 0):
                    self._tell(kind, now)

    def flush(self) -> None:
        """Write everything that has gathered; the end is near."""
        for kinds in (self._wide, self._kinds):
            for kind in kinds.values():
                if kind.count:
                    self._tell(kind, float("inf"))
            kinds.clear()

    def _new(self, key: Hashable, now: float) -> _Kind | None:
        """A kind of its own, in the place of one that nobody has used for an interval if need be."""
        if len(self._kinds) >= self._max_kinds:
            oldest_key, oldest = next(iter(self._kinds.items()))
            if now - oldest.used_at < self._interval or oldest.count:
                return None
            del self._kinds[oldest_key]
        kind = self._kinds[key] = _Kind(float("-inf"), now)
        return kind

    def _wide_kind(self, wider: Wider, now: float) -> _Kind:
        if wider.key not in self._wide and len(self._wide) >= MAX_WIDE_KINDS:
            wider = _WIDEST
        kind = self._wide.get(wider.key)
        if kind is None:
            kind = self._wide[wider.key] = _Kind(float("-inf"), now, wider.different)
        return kind

    def _may_tell(self, now: float, kept: int) -> bool:
        """Whether a line may be written now, `kept` being left for others."""
        if now > self._lines_at:
            self._lines = min(LINES_AT_ONCE, self._lines + (now - self._lines_at) * LINES_A_SECOND)
            self._lines_at = now
        return self._lines >= 1 + kept

    def _tell(self, kind: _Kind, now: float) -> None:
        details, times, records = kind.details or {}, kind.count, kind.records
        kind.told_at, kind.count, kind.records, kind.details = now, 0, 0, None
        self._lines -= 1
        self._emit(details, times, records)
