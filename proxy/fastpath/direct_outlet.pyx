"""Where a connection's bytes go without an object for them: what natively sends is one, a test's script is none."""

from cpython.bytes cimport PyBytes_FromStringAndSize

from sluicegate.proxy.session.connection cimport Connection


cdef class DirectOutlet:
    cdef int put(self, const char *data, Py_ssize_t size) except -1:
        """Send these bytes behind all that was written before; they may change as soon as this is over."""
        raise NotImplementedError


cdef int pass_on(Connection connection, const char *data, Py_ssize_t size) except -1:
    """Send bytes that lie in a read buffer: without a copy where the system takes them at once."""
    outlet = connection._transport
    if isinstance(outlet, DirectOutlet):
        return (<DirectOutlet>outlet).put(data, size)
    connection.write(PyBytes_FromStringAndSize(data, size))
    return 0
