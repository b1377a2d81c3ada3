# The types that Cython compiles topic_names.py with; the file itself stays plain Python.
cimport cython


cdef class TopicNames:
    cdef readonly dict by_id

    cpdef list missing(self, topic_ids)
