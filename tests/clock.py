"""Provides a clock that a test sets."""


class Clock:
    """Returns `now` (s)."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
