"""Waiting for something that nobody announces: look again, briefly, until it is so or the time is up."""

import time
from collections.abc import Callable


def eventually(is_so: Callable[[], object], seconds: float = 120, what: str = "") -> None:
    """Return as soon as `is_so()` is true. Raises AssertionError when it never is."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"not within {seconds} s: {what or is_so}"
        time.sleep(0.05)
