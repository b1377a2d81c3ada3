"""Polls for a condition that no event announces."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(wanted: Callable[[], T], seconds: float = 120, what: str = "") -> T:
    """Return the first true result of `wanted()`. Raises AssertionError if there is none within `seconds`."""
    end = time.monotonic() + seconds
    while not (found := wanted()):
        assert time.monotonic() < end, f"not within {seconds} s: {what or wanted}"
        time.sleep(0.05)
    return found
