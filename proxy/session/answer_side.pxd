# The types that Cython compiles answer_side.py with; the file itself stays plain Python.
cimport cython

from sluicegate.proxy.session.in_flight cimport Exchange
from sluicegate.proxy.session.memory cimport Gathering


cdef class BrokerSide:
    cdef object _session
    cdef object _finish
    cdef bint _is_first
    cdef Gathering _small
    cdef Gathering _large
    cdef Py_ssize_t _small_frame_bytes

    cpdef on_room(self, Py_ssize_t more, Py_ssize_t size)

    cdef _settle(self)
