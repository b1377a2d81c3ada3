# The types that Cython compiles headers.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.walk cimport Walk


@cython.locals(walk=Walk, tags=bytes)
cpdef Py_ssize_t skip_tagged_fields(data, Py_ssize_t position) except -1
