# cython: language_level=3
from sluicegate.proxy.session.connection cimport Connection


cdef class DirectOutlet:
    cdef int put(self, const char *data, Py_ssize_t size) except -1


cdef int pass_on(Connection connection, const char *data, Py_ssize_t size) except -1
