"""The time, asked natively: it is asked for each look at the sockets that brings a Produce request."""

from libc.stdint cimport int64_t
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec


def now_ms():
    """See `sluicegate.proxy.server.clock.now_ms`."""
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1_000_000
