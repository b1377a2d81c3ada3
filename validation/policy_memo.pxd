# The types that Cython compiles policy_memo.py with; the file itself stays plain Python.
cimport cython


cdef class PolicyMemo:
    cdef object _rulebook
    cdef dict _young
    cdef dict _old
    cpdef by(self, rulebook)
    cpdef of(self, str topic)
    cdef object _find(self, str topic)
