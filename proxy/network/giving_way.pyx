"""Gives way to other processes in small portions, where one client keeps the event loop busy without an end.

With more busy processes than processors Linux lets each of them run for its time slice (1.4 ms and more) before another
has its turn, and a small request waits for several: for the proxy, for its broker, for its answer. So the thread of the
event loop asks for slices of 0.1 ms, and while it is busy it lets others run each time it has run for one. Who gives way
forfeits the rest of the slice, and of a long one that is nearly all: beside busy processes the proxy would have a fifth of
its share. So where the system has no slices of one's own (Linux before 6.12), or a filter forbids to ask, nothing is done.

Who lets others run has its turn back when the system looks again, up to a tick of 4 ms later; who sleeps is given the
processor as soon as it wakes, unless it has had more than its part. So while somebody small asks beside a client at full
speed, and the thread has waited for a processor, both within the last tenth of a second, it sleeps 0.01 ms instead. That
costs throughput: up to a quarter of what the client at full speed had.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, clock_gettime, clockid_t, nanosleep, timespec

from sluicegate.proxy.network.run_delay cimport RunDelay

cdef extern from "<sched.h>":
    int SCHED_OTHER
    int SCHED_BATCH
    int sched_yield()

cdef extern from "<sys/prctl.h>":
    int PR_SET_TIMERSLACK
    int prctl(int option, ...)

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
    # Whoever has sent and been sent less than this in a tenth of a second and the one before is small.
    _RECENTLY_NS = 100_000_000
    _SMALL_BYTES = 64 * 1024
    # Whether others want the processors is asked every so many slices: has it waited for one part in so many?
    _SLICES = 10
    _WAITED_WITHIN = 10
    _NAP_NS = 10_000


@cython.final
cdef class GivingWay:
    """That of the thread that makes it. `slice_ns`: as the system gives it; 0 where it has none of one's own. `times`:
    how often others were let run; `naps`: how often of these by sleeping.
    """

    def __init__(self):
        self.slice_ns = _take_short_slices()
        self._ran, self._now = _nanoseconds(CLOCK_THREAD_CPUTIME_ID), _nanoseconds(CLOCK_MONOTONIC)
        self._delay = RunDelay()
        self._waited, self._waited_at = self._delay.nanoseconds(), self._now
        # Else what sleeps for 0.01 ms would sleep for six times as long; nobody else here sleeps for so short.
        self._can_nap = self.slice_ns > 0 and prctl(PR_SET_TIMERSLACK, <unsigned long>1) == 0

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
        self._period = now // _RECENTLY_NS
        if now - self._now < _BUSY_WITHIN * (ran - self._ran):
            self.times += 1
            if self._can_nap and self._period - self._small_asked <= 1:
                self._let_small_go_first(now)
            else:
                sched_yield()
            now = _nanoseconds(CLOCK_MONOTONIC)
        self._ran, self._now = ran, now

    cdef void _let_small_go_first(self, int64_t now) noexcept:
        cdef int64_t waited
        cdef timespec nap
        self._slices += 1
        if self._slices >= _SLICES:
            self._slices = 0
            waited = self._delay.nanoseconds()
            if (waited - self._waited) * _WAITED_WITHIN > now - self._waited_at:
                self._wanted_until = now + _RECENTLY_NS
            self._waited, self._waited_at = waited, now
        if now >= self._wanted_until:
            sched_yield()
            return
        self.naps += 1
        nap.tv_sec, nap.tv_nsec = 0, _NAP_NS
        nanosleep(&nap, NULL)


@cython.final
cdef class ClientShare:
    """What one client has sent and been sent, to know who is small. Told of instead of GivingWay, which it tells."""

    def __init__(self, GivingWay giving_way):
        self._giving_way = giving_way

    cpdef void has_taken(self, Py_ssize_t count) noexcept:
        """So many bytes of this client have been read and dealt with."""
        self._count(count)
        if self._now + self._before < _SMALL_BYTES:
            self._giving_way._small_asked = self._period
        self._giving_way.has_taken(count)

    cpdef void has_given(self, Py_ssize_t count) noexcept:
        """So many bytes were sent to this client: who fetches much is not small, however little it asks."""
        self._count(count)

    cdef void _count(self, Py_ssize_t count) noexcept:
        cdef int64_t period = self._giving_way._period
        if self._period != period:
            self._before = self._now if self._period == period - 1 else 0
            self._period, self._now = period, 0
        self._now += count


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
