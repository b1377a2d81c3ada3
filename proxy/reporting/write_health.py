"""Whether the proxy's own writes succeed: quarantined records, violation events, telemetry.

A destination fails from its first failed write, or from a write without a result for 5 s. It recovers if a write
succeeds and none has failed for 6 s, or if nothing was written for a minute. So a destination of which one partition
fails does not recover between two retries of a producer.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

_OVERDUE_SECONDS = 5.0
_QUIET_SECONDS = 6.0
_FORGOTTEN_SECONDS = 60.0


@dataclass(slots=True)
class _Failure:
    reason: str
    failed_at: float
    succeeded_at: float | None = None


class WriteHealth:
    """The results of writes, by destination. Thread-safe."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._lock = Lock()
        self._failures: dict[str, _Failure] = {}
        self._under_way: dict[int, tuple[str, float]] = {}
        self._number = 0

    def begin(self, destination: str) -> int:
        """Note that a write begins; return the number to `end` it with."""
        with self._lock:
            self._number += 1
            self._under_way[self._number] = destination, self._seconds()
            return self._number

    def end(self, number: int) -> None:
        """Note that a write has a result; report that with `succeeded` or `failed`."""
        with self._lock:
            self._under_way.pop(number, None)

    def succeeded(self, destination: str) -> None:
        """Note a successful write."""
        with self._lock:
            failure = self._failures.get(destination)
            if failure is not None:
                failure.succeeded_at = self._seconds()

    def failed(self, destination: str, reason: str) -> None:
        """Note a failed write."""
        with self._lock:
            self._failures[destination] = _Failure(reason, self._seconds())

    def failing(self) -> dict[str, str]:
        """Return the destinations that fail, each with the newest reason."""
        now = self._seconds()
        with self._lock:
            for destination, failure in list(self._failures.items()):
                quiet = now - failure.failed_at
                if quiet > _FORGOTTEN_SECONDS or (failure.succeeded_at is not None and quiet > _QUIET_SECONDS):
                    del self._failures[destination]
            found = {destination: failure.reason for destination, failure in self._failures.items()}
            for destination, began_at in self._under_way.values():
                if now - began_at > _OVERDUE_SECONDS:
                    found.setdefault(destination, f"no result within {_OVERDUE_SECONDS:.0f} s")
        return found
