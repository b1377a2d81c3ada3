"""Counts what bounds that are not in force would reject, while the records are scanned.

Times are held against bounds as a broker does it (KIP-937): in int64 milliseconds that wrap as Java's long does.
"""

from array import array
from collections.abc import Sequence

from sluicegate.protocol.int64 import ALL_64, SIGN_64

_U64 = ALL_64
_SIGN_64 = SIGN_64


class Rehearsal:
    """Of one batch. `before_max_ms` and `after_max_ms` are in force; `befores` and `afters` are tried (ms).

    `begin` comes first. Then `rejects` is asked about each record that keeps not the narrowest bounds of all.
    `ahead_ms` is how far the latest of those that are good all the same is ahead of now; `keeps_any`: there are some.
    """

    def __init__(
        self, before_max_ms: int, after_max_ms: int, befores: Sequence[int] = (), afters: Sequence[int] = ()
    ) -> None:
        self._before_max_ms = before_max_ms
        self._after_max_ms = after_max_ms
        self._befores = array("q", [*befores, 0])  # never empty, as a buffer must not be
        self._afters = array("q", [*afters, 0])
        self._before_count = len(befores)
        self._after_count = len(afters)
        self._counts = array("q", bytes(8 * (self._before_count + self._after_count + 1)))
        self._now_delta = 0
        self.ahead_ms = 0
        self.keeps_any = False

    def begin(self, now_ms: int, base_timestamp: int) -> None:
        """Records are told as their distance to `base_timestamp`."""
        self._now_delta = (now_ms - base_timestamp) & _U64

    def rejects(self, delta: int) -> bool:
        """Count a record, its time as a pattern of 64 bits; whether the bounds that are in force reject it."""
        behind = _signed((self._now_delta - delta) & _U64)
        ahead = _signed((delta - self._now_delta) & _U64)
        i = 0
        while i < self._before_count:
            if behind > self._befores[i]:
                self._counts[i] += 1
            i += 1
        i = 0
        while i < self._after_count:
            if ahead > self._afters[i]:
                self._counts[self._before_count + i] += 1
            i += 1
        if behind > self._before_max_ms or ahead > self._after_max_ms:
            return True
        if not self.keeps_any or ahead > self.ahead_ms:
            self.ahead_ms = ahead
            self.keeps_any = True
        return False

    @property
    def counts(self) -> tuple[int, ...]:
        """How many records each bound would reject: first those for the past, then those for the future."""
        return tuple(self._counts)[:-1]


def _signed(pattern: int) -> int:
    """The int64 that a pattern of 64 bits stands for."""
    return (pattern ^ _SIGN_64) - _SIGN_64
