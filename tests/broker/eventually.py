"""Waiting for something that nobody announces: look again, briefly, until it is so or the time is up."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(wanted: Callable[[], T], seconds: float = 120, what: str = "") -> T:
    """Return what `wanted()` returns, as soon as that is true. Raises AssertionError if it never is."""
    end = time.monotonic() + seconds
    while not (found := wanted()):
        assert time.monotonic() < end, f"not within {seconds} s: {what or wanted}"
        time.sleep(0.05)
    return found
