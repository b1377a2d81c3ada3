"""What the fast lanes of one event loop have taken, by API, and which of it is timed: of each API the first, and then
every 128th, which stands for those since the one before. A clock for each would cost as much as half a judgement.
"""

from sluicegate.proxy.session.in_flight cimport Exchange

cdef enum:
    _API_KEYS = 128
    _TIMED_EVERY = 128


cdef class LaneCounts:
    def __init__(self, clock, failed):
        """`clock` is a RequestClock; `failed(peer, error)` is told of faults of a lane's own."""
        self.clock = clock
        self.failed = failed

    def by_api(self):
        """How many requests were taken, by API key."""
        return {key: self.taken[key] + self.gathered[key] for key in range(_API_KEYS) if self.taken[key] + self.gathered[key]}

    cdef double now(self) except? -1:
        return self.clock.now()

    cdef int time(self, int key, double came, Exchange exchange) except -1:
        """Tell of the request that was taken last, and what it stands for; `exchange` None: nothing answers it."""
        cdef long long taken = self.taken[key]
        self.clock.sent(key, came, exchange, taken - self._timed[key])
        self._timed[key] = taken
        self.due_at[key] = taken + _TIMED_EVERY - 1
        return 0
