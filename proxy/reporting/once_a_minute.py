"""At most one report a minute for each kind of thing, with how often it happened; from any thread."""

import threading
import time
from collections.abc import Callable, Hashable

_INTERVAL_SECONDS = 60.0
_MAX_KINDS = 100


class OnceAMinute:
    """Where nobody sweeps: what happened since the last report is told with the next one."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.RLock()  # a finaliser may report something within
        self._kinds: dict[Hashable, tuple[float, int]] = {}

    def due(self, kind: Hashable) -> int | None:
        """It happened: how often since the last report when one is due now, else None."""
        now = self._now()
        with self._lock:
            if kind not in self._kinds and len(self._kinds) >= _MAX_KINDS:
                kind = self._place_for(kind, now)
            reported, times = self._kinds.get(kind, (float("-inf"), 0))
            if now - reported < _INTERVAL_SECONDS:
                self._kinds[kind] = (reported, times + 1)
                return None
            self._kinds[kind] = (now, 0)
            return times + 1

    def _place_for(self, kind: Hashable, now: float) -> Hashable:
        """The kind itself where a quiet one gives up its place; else the one of all that found none."""
        quiet = [old for old, (reported, _) in self._kinds.items() if now - reported >= _INTERVAL_SECONDS]
        untold = sum(self._kinds.pop(old)[1] for old in quiet)
        if untold:
            reported, times = self._kinds.get(None, (float("-inf"), 0))
            self._kinds[None] = (reported, times + untold)
        return kind if quiet else None
