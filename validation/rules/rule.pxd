# The types that Cython compiles rule.py with; the file itself stays plain Python.
cimport cython


cdef class StepBudget:
    cdef public object spent

    cpdef spend(self, steps)


cdef class LimitedSteps(StepBudget):
    cdef StepBudget _within
    cdef object _most

    cpdef spend(self, steps)


cdef class RuledRecord:
    cdef public object topic
    cdef public object partition
    cdef public object index
    cdef public object timestamp
    cdef public object key
    cdef public object value
    cdef public tuple headers
    cdef public object client
    cdef public object key_size
    cdef public object value_size
    cdef public object producer_id
    cdef public object header_count
    cdef public object header_bytes
    cdef public StepBudget budget

    cpdef fill(self, index, timestamp, key, value, tuple headers, key_size, value_size)
