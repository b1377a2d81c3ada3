"""The proxy's clock: the only place that asks the system for the time that records are validated against."""

from time import time_ns

_NS_IN_MS = 1_000_000


def now_ms() -> int:
    """The time since the epoch in ms, as brokers count it."""
    return time_ns() // _NS_IN_MS
