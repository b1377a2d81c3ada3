"""How long the thread of an event loop has waited for a processor while it could have run, as Linux counts it.

/proc/thread-self/schedstat holds three numbers of one thread: how long it ran and how long it waited to run (ns), and how
often it was let run. A kernel that was built without them says 0, and whoever may not read it is told 0.
"""

import os

from libc.stdint cimport int64_t
from libc.stdlib cimport strtoll
from posix.unistd cimport close, pread

cdef enum:
    _MOST_BYTES = 80  # three numbers of 64 bits


cdef class RunDelay:
    """That of the thread that makes it."""

    def __cinit__(self):
        self._file = -1

    def __init__(self):
        try:
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # another system, or one that hides it
            pass

    def __dealloc__(self):
        if self._file >= 0:
            close(self._file)

    cpdef int64_t nanoseconds(self) noexcept:
        """Since the thread began; may be asked from another thread."""
        cdef char[_MOST_BYTES] text
        cdef char *behind_first
        cdef ssize_t count
        if self._file < 0:
            return 0
        count = pread(self._file, text, _MOST_BYTES - 1, 0)
        if count <= 0:
            return 0
        text[count] = 0
        strtoll(text, &behind_first, 10)
        return strtoll(behind_first, NULL, 10)
