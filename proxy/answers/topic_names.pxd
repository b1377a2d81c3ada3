# The types that Cython compiles topic_names.py with; the file itself stays plain Python.
cimport cython


cdef class TopicNames:
    cdef readonly object by_id
    cdef object _known
    cdef object _unknown_until

    cpdef bint is_known(self, str name)

    cpdef list missing(self, topic_ids, now_ms)
