"""What all fast paths of one event loop share: the counts of what they took, and the memory for what has begun."""

from libc.stdlib cimport calloc, free

from sluicegate.proxy.session.in_flight cimport Exchange

from sluicegate.protocol.api import APIS

cdef enum:
    _TIMED_EVERY = 128


cdef class PathCounts:
    """By API, what was taken, and which of it is timed: of each API the first request, and then every 128th, which stands
    for those since the one before. A clock for each would cost as much as half a validation.
    """

    def __cinit__(self):
        self.keys = max(APIS) + 1
        self.taken = <long long *> calloc(4 * self.keys, sizeof(long long))
        if self.taken == NULL:
            raise MemoryError
        self.gathered = self.taken + self.keys
        self.due_at = self.gathered + self.keys
        self._timed = self.due_at + self.keys

    def __dealloc__(self):
        free(self.taken)

    def __init__(self, clock, failed):
        """`clock` is a RequestClock; `failed(peer, error)` reports a fault of the fast path's own."""
        self.clock = clock
        self.failed = failed

    def by_api(self):
        """How many requests were taken, by API key."""
        return {key: self.taken[key] + self.gathered[key] for key in range(self.keys) if self.taken[key] + self.gathered[key]}

    cdef double now(self) except? -1:
        return self.clock.now()

    cdef int time(self, int key, double came, Exchange exchange) except -1:
        """Time the request that was taken last, and what it stands for; `exchange` None: no response comes."""
        cdef long long taken = self.taken[key]
        self.clock.sent(key, came, exchange, taken - self._timed[key])
        self._timed[key] = taken
        self.due_at[key] = taken + _TIMED_EVERY - 1
        return 0


cdef class FastPathBuffer:
    """Memory for requests whose beginning is kept until they are whole: `total_bytes` at most; `held_bytes` are those that
    frames claim which have begun. Nothing waits for it: if there is none, the slow path gathers what comes.
    """

    def __init__(self, Py_ssize_t total_bytes):
        self.total_bytes = total_bytes

    cdef bint take(self, Py_ssize_t size) noexcept:
        """Whether there is room for so much more; then it is taken."""
        if size > self.total_bytes - self.held_bytes:
            return False
        self.held_bytes += size
        return True

    cdef void give_back(self, Py_ssize_t size) noexcept:
        self.held_bytes -= size
