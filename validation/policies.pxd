# The types that Cython compiles policies.py with; the file itself stays plain Python.
cimport cython


cdef class TopicPolicies:
    cdef object _default
    cdef object _patterns
    cdef list _by_pattern
    cdef dict _from_cluster
    cdef dict _young
    cdef dict _old
    cdef readonly long long generation
    cdef object _find(self, str topic)
    cdef object _from_file(self, str topic)
