"""The proxy's clock: the only source of the time that records are validated against."""

from time import time_ns

_NS_IN_MS = 1_000_000


def now_ms() -> int:
    """Return the Unix time in ms, as brokers measure it."""
    return time_ns() // _NS_IN_MS
