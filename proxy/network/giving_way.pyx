"""Gives way to other processes in small portions, where one client keeps the event loop busy without an end.

With more busy processes than processors Linux lets each of them run for its time slice (1.4 ms and more) before another
has its turn, and a small request waits for several: for the proxy, for its broker, for its answer. So the thread of the
event loop asks for slices of 0.1 ms, and while it is busy it lets others run each time it has run for one. Who gives way
forfeits the rest of the slice, and of a long one that is nearly all: beside busy processes the proxy would have a fifth of
its share. So where the system has no slices of one's own (Linux before 6.12), or a filter forbids to ask, nothing is done.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, clock_gettime, clockid_t, timespec

cdef extern from "<sched.h>":
    int SCHED_OTHER
    int SCHED_BATCH
    int sched_yield()

cdef extern from "<unistd.h>":
    long syscall(long number, ...)

cdef extern from "<sys/syscall.h>":
    long SYS_sched_getattr
    long SYS_sched_setattr

# sched_setattr(2), the first version; for ordinary policies `runtime` is the slice (ns) since Linux 6.12.
cdef struct Attributes:
    uint32_t size
    uint32_t policy
    uint64_t flags
    int32_t nice
    uint32_t priority
    uint64_t runtime
    uint64_t deadline
    uint64_t period

cdef enum:
    _SLICE_NS = 100_000  # the least there is
    # How often the clock is looked at, and what looking at a socket costs, as if it were bytes.
    _LOOKED_AT_BYTES = 32 * 1024
    _FOR_A_LOOK = 4 * 1024
    # Whoever has run for less than one part in so many leaves others time enough by waiting.
    _BUSY_WITHIN = 4


@cython.final
cdef class GivingWay:
    """That of the thread that makes it. `slice_ns`: as the system gives it; 0 where it has none of one's own. `times`:
    how often others were let run.
    """

    def __init__(self):
        self.slice_ns = _take_short_slices()
        self._ran, self._now = _nanoseconds(CLOCK_THREAD_CPUTIME_ID), _nanoseconds(CLOCK_MONOTONIC)

    cpdef void has_taken(self, Py_ssize_t count) noexcept:
        """So many bytes have been read and dealt with."""
        self._taken += count + _FOR_A_LOOK
        if self._taken >= _LOOKED_AT_BYTES:
            self._taken = 0
            if self.slice_ns > 0:
                self._look()

    cdef void _look(self) noexcept:
        cdef int64_t now, ran = _nanoseconds(CLOCK_THREAD_CPUTIME_ID)
        if ran - self._ran < _SLICE_NS:
            return
        now = _nanoseconds(CLOCK_MONOTONIC)
        if now - self._now < _BUSY_WITHIN * (ran - self._ran):
            self.times += 1
            sched_yield()
            now = _nanoseconds(CLOCK_MONOTONIC)
        self._ran, self._now = ran, now


cdef int64_t _nanoseconds(clockid_t clock) noexcept:
    cdef timespec told
    clock_gettime(clock, &told)
    return <int64_t>told.tv_sec * 1_000_000_000 + told.tv_nsec


cdef uint64_t _take_short_slices() noexcept:
    # Of one's own thread (0), and of those that it begins later; nothing else of it is changed.
    cdef Attributes own
    memset(&own, 0, sizeof(own))
    if syscall(SYS_sched_getattr, 0, &own, sizeof(own), 0) != 0:
        return 0
    if own.policy != SCHED_OTHER and own.policy != SCHED_BATCH:
        return 0
    own.size = sizeof(own)
    own.runtime = _SLICE_NS
    if syscall(SYS_sched_setattr, 0, &own, 0) != 0:
        return 0
    memset(&own, 0, sizeof(own))
    if syscall(SYS_sched_getattr, 0, &own, sizeof(own), 0) != 0:
        return 0
    return own.runtime
