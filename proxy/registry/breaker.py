"""Whether a registry may be asked: one that has failed is left alone for a while, and longer while it goes on failing.

A circuit breaker: the first failures are a second's rest each. With the third in a row it opens, which is told, and the
rest doubles with each more. When it is over, one question finds out whether the registry answers again.
"""

import threading
from collections.abc import Callable
from typing import Protocol

_REST_SECONDS = 1.0
_OPENS_AT = 3
_LONGEST_SECONDS = 15.0
_MOST_DOUBLED = 10
# However long it wants to be left alone.
_MOST_WANTED_SECONDS = 30.0


class Reports(Protocol):
    """Called from any thread."""

    def failed(self, registry: str) -> None:
        """A question to it had no answer."""

    def backoff_started(self, registry: str, failures: int, reason: str) -> None:
        """It failed so often in a row that it is asked more and more seldom."""

    def recovered(self, registry: str, seconds: float) -> None:
        """It does, so long after the first of these failures."""

    def fault(self, registry: str, error: Exception) -> None:
        """Asking it failed by a fault of our own."""


class NobodyIsTold:
    """For who asks once and sees for itself."""

    def failed(self, registry: str) -> None:
        return

    def backoff_started(self, registry: str, failures: int, reason: str) -> None:
        return

    def recovered(self, registry: str, seconds: float) -> None:
        return

    def fault(self, registry: str, error: Exception) -> None:
        return


class Breaker:
    """Of one registry; for several threads. `now`: seconds that only go forward."""

    def __init__(self, name: str, now: Callable[[], float], reports: Reports) -> None:
        self._name = name
        self._now = now
        self._reports = reports
        self._lock = threading.Lock()
        self._questions = self._failed_question = 0
        self._in_a_row = 0
        self._rests_until: float | None = None
        self._failing_since = 0.0
        self.asked_since = 0.0
        """When the last question was asked."""
        self.failure = ""
        """What went wrong last, in words."""

    @property
    def has_failed(self) -> bool:
        """Whether the last thing it did was to fail; so nobody waits for it."""
        return self._rests_until is not None

    @property
    def rests(self) -> bool:
        """Whether nothing at all may be asked now."""
        rests_until = self._rests_until
        return rests_until is not None and self._now() < rests_until

    def asked(self) -> None:
        """A question begins, one at a time."""
        with self._lock:
            self._questions += 1
            self.asked_since = self._now()

    def answered(self) -> None:
        """The question under way had an answer."""
        with self._lock:
            was_open, self._in_a_row, self._rests_until = self._in_a_row >= _OPENS_AT, 0, None
            seconds = self._now() - self._failing_since
        if was_open:
            self._reports.recovered(self._name, seconds)

    def failed(self, failure: str, wanted_seconds: float = 0) -> None:
        """The question under way failed, or is late; said by all who wait for it, it is one failure.

        `wanted_seconds`: how long the registry has asked to be left alone.
        """
        with self._lock:
            self.failure = failure
            is_another = self._failed_question != self._questions
            if is_another:
                self._failed_question = self._questions
                self._in_a_row += 1
                if self._in_a_row == 1:
                    self._failing_since = self._now()
            failures = self._in_a_row
            seconds = self._rest(wanted_seconds)
            self._rests_until = self._now() + seconds
        if is_another:
            self._reports.failed(self._name)
            if failures == _OPENS_AT:
                self._reports.backoff_started(self._name, failures, failure)

    def _rest(self, wanted_seconds: float) -> float:
        doubled = max(0, min(self._in_a_row, _MOST_DOUBLED) - _OPENS_AT + 1)
        own = min(_REST_SECONDS * float(1 << doubled), _LONGEST_SECONDS)
        return max(own, min(wanted_seconds, _MOST_WANTED_SECONDS))
