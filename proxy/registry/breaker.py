"""A circuit breaker for a registry, which blocks requests for a while after a failure.

The first and the second failure each block requests for a second. The third failure in a row opens the circuit, which
is reported. The blocked time then doubles with each further failure. After that time, a single request tests whether
the registry responds again.
"""

import threading
from collections.abc import Callable
from typing import Protocol

_PAUSE_SECONDS = 1.0
_OPENS_AT = 3
_LONGEST_SECONDS = 15.0
_MOST_DOUBLED = 10
# The longest Retry-After of a registry that the proxy honours.
_MOST_RETRY_AFTER_SECONDS = 30.0


class RegistryEvents(Protocol):
    """Receives the events of registries. Its methods are called from any thread."""

    def failed(self, registry: str) -> None:
        """Called when a request has failed."""

    def backoff_started(self, registry: str, failures: int, reason: str) -> None:
        """Called after `failures` failed requests in a row, as soon as requests are sent less and less often."""

    def recovered(self, registry: str, seconds: float) -> None:
        """Called when the registry responds again, `seconds` after the first failure."""

    def changed(self, registry: str, schema_id: str, *, is_absent: bool) -> None:
        """Called when an id's schema in a registry has changed or disappeared."""

    def count_encrypted(self, registry: str, part: str) -> None:
        """Called for each record whose value is encrypted. `part` is `whole` or `fields`."""

    def fault(self, registry: str, error: Exception) -> None:
        """Called when a request failed because of a bug in the proxy."""


class NoRegistryEvents:
    """Ignores all events."""

    def failed(self, registry: str) -> None:
        return

    def backoff_started(self, registry: str, failures: int, reason: str) -> None:
        return

    def recovered(self, registry: str, seconds: float) -> None:
        return

    def changed(self, registry: str, schema_id: str, *, is_absent: bool) -> None:
        return

    def count_encrypted(self, registry: str, part: str) -> None:
        return

    def fault(self, registry: str, error: Exception) -> None:
        return


class Breaker:
    """One registry's circuit breaker. Thread-safe. `now` returns monotonic seconds."""

    def __init__(self, name: str, now: Callable[[], float], reports: RegistryEvents) -> None:
        self._name = name
        self._now = now
        self._reports = reports
        self._lock = threading.Lock()
        self._requests = self._failed_request = 0
        self._in_a_row = 0
        self._blocked_until: float | None = None
        self._failing_since = 0.0
        self.started_at = 0.0
        """The time when the last request started."""
        self.failure = ""
        """The message of the last failure."""

    @property
    def has_last_failed(self) -> bool:
        """Whether the last request failed, so that callers should not wait for the next one."""
        return self._blocked_until is not None

    @property
    def blocks_requests(self) -> bool:
        """Whether no request may be sent now."""
        blocked_until = self._blocked_until
        return blocked_until is not None and self._now() < blocked_until

    def request_started(self) -> None:
        """Record the start of a request. Only one request is active at a time."""
        with self._lock:
            self._requests += 1
            self.started_at = self._now()

    def request_succeeded(self) -> None:
        """Record a response to the current request."""
        with self._lock:
            was_open, self._in_a_row, self._blocked_until = self._in_a_row >= _OPENS_AT, 0, None
            seconds = self._now() - self._failing_since
        if was_open:
            self._reports.recovered(self._name, seconds)

    def request_failed(self, failure: str, retry_after_seconds: float = 0) -> None:
        """Record that the current request failed or is late.

        Several callers may report the same failure, which counts once. `retry_after_seconds` is the delay that the
        registry requested.
        """
        with self._lock:
            self.failure = failure
            is_new = self._failed_request != self._requests
            if is_new:
                self._failed_request = self._requests
                self._in_a_row += 1
                if self._in_a_row == 1:
                    self._failing_since = self._now()
            failures = self._in_a_row
            self._blocked_until = self._now() + self._pause_seconds(retry_after_seconds)
        if is_new:
            self._reports.failed(self._name)
            if failures == _OPENS_AT:
                self._reports.backoff_started(self._name, failures, failure)

    def _pause_seconds(self, retry_after_seconds: float) -> float:
        doubled = max(0, min(self._in_a_row, _MOST_DOUBLED) - _OPENS_AT + 1)
        own = min(_PAUSE_SECONDS * float(1 << doubled), _LONGEST_SECONDS)
        return max(own, min(retry_after_seconds, _MOST_RETRY_AFTER_SECONDS))
