"""Records whether the proxy's own writes succeed: quarantined records, violation events and telemetry.

A destination fails from its first failed write on, or when a write has had no result for 5 s. It recovers when a write
succeeds and none has failed for 6 s, or when nothing was written for a minute. So a destination with only one failing
partition does not recover between a producer's retries.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from sluicegate.proxy.reporting.waiting_clients import WaitingClients, WaitingNames, merge_waiting

_OVERDUE_SECONDS = 5.0
QUIET_SECONDS = 6.0
"""The time in seconds without a failure after which a successful write ends a destination's failure."""
_FORGOTTEN_SECONDS = 60.0


@dataclass(slots=True)
class _Failure:
    reason: str
    failed_at: float
    succeeded_at: float | None = None


@dataclass(frozen=True, slots=True)
class WriteFailure:
    """Why a destination fails, when its last write failed (s, monotonic), and which clients wait for it.

    The clients are None if no client can wait for the destination.
    """

    reason: str
    failed_at: float
    waiting: WaitingNames | None = None


class WriteHealth:
    """The results of writes, by destination. Thread-safe."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._lock = Lock()
        self._failures: dict[str, _Failure] = {}
        self._under_way: dict[int, tuple[str, float, WaitingNames | None]] = {}
        self._succeeded_at: dict[str, float] = {}
        self._waiting: dict[str, WaitingClients] = {}
        self._number = 0

    def begin(self, destination: str, waiting: WaitingNames | None = None) -> int:
        """Record that a write begins, and return the number with which to `end` it.

        `waiting` contains the clients that wait for the write.
        """
        with self._lock:
            self._number += 1
            self._under_way[self._number] = destination, self._seconds(), waiting
            return self._number

    def end(self, number: int) -> None:
        """Record that a write has ended. `succeeded` or `failed` reports its result."""
        with self._lock:
            self._under_way.pop(number, None)

    def succeeded(self, destination: str, waiting: WaitingNames | None = None) -> None:
        """Record a successful write. `waiting` contains the clients that waited for it."""
        with self._lock:
            self._succeeded_at[destination] = self._seconds()
            if waiting is not None and destination in self._waiting:
                self._waiting[destination].remove(waiting)
            failure = self._failures.get(destination)
            if failure is not None:
                failure.succeeded_at = self._seconds()

    def failed(self, destination: str, reason: str, waiting: WaitingNames | None = None) -> None:
        """Record a failed write. `waiting` contains the clients that were told to retry."""
        with self._lock:
            if waiting is not None:
                self._waiting.setdefault(destination, WaitingClients(self._seconds)).add(waiting)
            self._failures[destination] = _Failure(reason, self._seconds())

    def succeeded_at(self) -> dict[str, float]:
        """Return the time (s, monotonic) of the last successful write to each destination."""
        with self._lock:
            return dict(self._succeeded_at)

    def failing(self) -> dict[str, WriteFailure]:
        """Return the destinations that are failing now."""
        now = self._seconds()
        with self._lock:
            for destination, failure in list(self._failures.items()):
                quiet = now - failure.failed_at
                if quiet > _FORGOTTEN_SECONDS or (failure.succeeded_at is not None and quiet > QUIET_SECONDS):
                    del self._failures[destination]
                    self._waiting.pop(destination, None)
            found = {
                destination: WriteFailure(failure.reason, failure.failed_at, self._waiting_for(destination))
                for destination, failure in self._failures.items()
            }
            for destination, began_at, waiting in self._under_way.values():
                if now - began_at > _OVERDUE_SECONDS:
                    reason = f"no result within {_OVERDUE_SECONDS:.0f} s"
                    known = found.get(destination, WriteFailure(reason, now, self._waiting_for(destination)))
                    found[destination] = WriteFailure(known.reason, now, merge_waiting(known.waiting, waiting))
        return found

    def _waiting_for(self, destination: str) -> WaitingNames | None:
        known = self._waiting.get(destination)
        return None if known is None else known.now()
