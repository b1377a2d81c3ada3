# The types that Cython compiles policies.py with; the file itself stays plain Python.
cimport cython


cdef class TopicPolicies:
    cdef object _default
    cdef list _patterns
    cdef dict _from_cluster
    cdef dict _remembered
