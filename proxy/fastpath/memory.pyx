"""Memory for requests whose beginning the fast lanes of one event loop keep, until they are whole. Nobody waits for it:
where there is none the slow lane gathers what comes.
"""


cdef class LaneRoom:
    """`total_bytes` at most; `held_bytes` are those that frames claim which have begun."""

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
