# The types that Cython compiles observer.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.produce_request cimport ProduceRequest
from sluicegate.validation.produce cimport JudgedRequest
from sluicegate.validation.verdict cimport Accepted

cdef object _FAR_AHEAD_MS


cdef class Observer:
    cdef object _tally
    cdef object _labels
    cdef object _names
    cdef object _violations
    cdef object _max_records
    cdef object _ordinary
    cdef object _later
    cdef object _log
    cdef object _refusals
    cdef object _observed
    cdef object _fixed
    cdef object _quarantined
    cdef object _not_quarantined
    cdef object _by_mode
    cdef object _rehearsals
    cdef object _far_ahead
    cdef object _aggregators
    cdef object _clients
    cdef object _rules

    @cython.locals(accepted=Accepted)
    cpdef judged(self, identity, ProduceRequest request, JudgedRequest judged)
