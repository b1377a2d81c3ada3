"""Records one registry's failed lookups, until a lookup of the same kind succeeds."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import Any

# A shorter outage is not reported: while a registry restarts behind a load balancer, one or two lookups fail.
_LASTING_SECONDS = 3.0


class LookUp(Enum):
    """What the proxy looks up in a registry. The values are phrases for messages."""

    SCHEMA = "schemas by id and their references"
    SUBJECT = "the subjects of a schema"
    NEWEST = "the newest schemas of subjects"


Wanted = tuple[LookUp, Hashable]
"""A kind of lookup and the key that it looks up."""


@dataclass(frozen=True, slots=True)
class _Failure:
    since: float
    reason: str
    wanted: Wanted
    look_up: Callable[[], Any]


class FailedLookUps:
    """The newest failed lookup of each kind. Thread-safe. `now` returns monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = Lock()
        self._failures: dict[LookUp, _Failure] = {}

    def failed(self, wanted: Wanted, look_up: Callable[[], Any], reason: str) -> None:
        """Record a failed lookup."""
        with self._lock:
            known = self._failures.get(wanted[0])
            since = self._now() if known is None else known.since
            self._failures[wanted[0]] = _Failure(since, reason, wanted, look_up)

    def succeeded(self, kind: LookUp) -> None:
        """Record that a lookup of this kind has succeeded."""
        with self._lock:
            self._failures.pop(kind, None)

    def lasting(self) -> dict[LookUp, str]:
        """Return the kinds of lookup that have failed for at least 3 s, each with the newest reason."""
        now = self._now()
        with self._lock:
            return {kind: each.reason for kind, each in self._failures.items() if now - each.since >= _LASTING_SECONDS}

    def look_ups(self) -> list[tuple[Wanted, Callable[[], Any]]]:
        """Return the newest failed lookup of each kind."""
        with self._lock:
            return [(each.wanted, each.look_up) for each in self._failures.values()]
