"""The proxy's clock: the only place that asks the system for the time that records are judged against."""

from contextlib import suppress
from time import time_ns

from sluicegate.protocol.records.scan import is_compiled

_NS_IN_MS = 1_000_000


def now_ms() -> int:
    """The time since the epoch in ms, as brokers count it."""
    now_ns = time_ns()
    return now_ns // _NS_IN_MS


if is_compiled():
    with suppress(ImportError):  # of what is native this alone could not be compiled
        pass
