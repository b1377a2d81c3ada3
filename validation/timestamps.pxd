# The types that Cython compiles timestamps.py with; the file itself stays plain Python.
cimport cython


cdef class TimeWindow:
    cdef readonly object now_ms
    cdef readonly object before_max_ms
    cdef readonly object after_max_ms

    cpdef as_scanned(self, base_timestamp)


cpdef window_of(policy, now_ms)
