"""The proxy's clock, the only source of the time against which records are validated."""

from time import time_ns

_NS_IN_MS = 1_000_000


def now_ms() -> int:
    """Return the Unix time in ms, as brokers do."""
    return time_ns() // _NS_IN_MS
