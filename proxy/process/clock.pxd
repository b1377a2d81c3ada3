# The types that Cython compiles clock.py with; the file itself stays plain Python.
cimport cython

cdef long long _NS_IN_MS

@cython.locals(now_ns=longlong)
cpdef long long now_ms() except -1
