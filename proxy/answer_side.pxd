# The types that Cython compiles answer_side.py with; the file itself stays plain Python.
cimport cython

from proxy.in_flight cimport Exchange


cdef class BrokerSide:
    cdef object _session
    cdef object _finish
