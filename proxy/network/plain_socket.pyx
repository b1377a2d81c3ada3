"""Reads and writes a connection's socket natively, without TLS.

Unlike an event loop's own transport, this module makes no Python object for each read and write, and does not release
the interpreter lock each time. The event loop only reports when a socket is readable or writable (`add_reader`,
`add_writer`). Data that are written while sockets are being read are sent at the end of that loop iteration, in one
system call for each socket.
"""

import os
import socket

from libc.stdint cimport uint32_t
from posix.unistd cimport close

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EAGAIN, EINTR, errno
from libc.string cimport memset

from sluicegate.proxy.session.connection cimport Connection, DirectOutlet

cdef extern from "<sys/uio.h>":
    struct iovec:
        void *iov_base
        size_t iov_len

cdef extern from "<sys/socket.h>":
    struct msghdr:
        iovec *msg_iov
        size_t msg_iovlen
    ssize_t recv(int fd, void *buffer, size_t size, int flags)
    ssize_t send(int fd, const void *buffer, size_t size, int flags)
    ssize_t sendmsg(int fd, const msghdr *message, int flags)
    int MSG_NOSIGNAL

cdef extern from "<sys/epoll.h>":
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int operation, int fd, epoll_event *event)
    int epoll_wait(int epoll, epoll_event *events, int most, int timeout)
    int EPOLL_CLOEXEC
    int EPOLL_CTL_ADD
    uint32_t EPOLLET

cdef enum:
    # If more unsent bytes than the high mark are waiting, the connection stops producing output. It resumes at the low
    # mark.
    _HIGH_WATER_BYTES = 64 * 1024
    _LOW_WATER_BYTES = 16 * 1024
    _MOST_PARTS = 64
    _MOST_FAILURES = 64


cdef class PlainSocket(DirectOutlet)


cdef class PlainSockets:
    """The native sockets of one event loop.

    They detect resets with a separate epoll instance. libuv, and so uvloop, stops watching a reset socket after one
    callback, and that callback does not report the reset if unread bytes precede it.
    """

    cdef readonly object loop
    cdef list _written
    cdef dict _open
    cdef int _failures
    cdef bint _in_turn
    cdef bint _sends_soon

    def __init__(self, loop):
        self._failures = epoll_create1(EPOLL_CLOEXEC)
        if self._failures < 0:
            raise _error(errno)
        self.loop = loop
        self._written = []
        self._open = {}
        loop.add_reader(self._failures, self._some_have_failed)

    def __cinit__(self):
        self._failures = -1

    def __dealloc__(self):
        if self._failures >= 0:
            close(self._failures)

    def attach(self, plain, protocol):
        """Connect `protocol` to `plain`, a connected non-blocking socket.

        `protocol` is a connection, or the TLS layer of a connection, with the methods of asyncio's BufferedProtocol.
        """
        cdef epoll_event nothing_else
        cdef PlainSocket attached = PlainSocket(self, plain, protocol)
        nothing_else.events = EPOLLET
        nothing_else.data.fd = attached._descriptor
        if epoll_ctl(self._failures, EPOLL_CTL_ADD, attached._descriptor, &nothing_else) < 0:
            raise _error(errno)
        self._open[attached._descriptor] = attached
        attached._begin()

    def _some_have_failed(self):
        cdef epoll_event[_MOST_FAILURES] events
        cdef int at
        cdef PlainSocket failed
        cdef int count = epoll_wait(self._failures, events, _MOST_FAILURES, 0)
        for at in range(count):
            failed = self._open.get(events[at].data.fd)
            if failed is not None:
                failed._has_failed()

    cdef _has_written(self, PlainSocket written):
        self._written.append(written)
        if not self._in_turn and not self._sends_soon:
            self._sends_soon = True
            self.loop.call_soon(self._send_all)

    cdef _end_turn(self):
        # The callback of a send may write again.
        cdef PlainSocket written
        cdef Py_ssize_t at = 0
        try:
            while at < len(self._written):
                written = self._written[at]
                at += 1
                written._is_due = False
                written._send()
        finally:
            self._in_turn = False
            if at == len(self._written):
                self._written.clear()
            else:
                del self._written[:at]
                self._sends_soon = True
                self.loop.call_soon(self._send_all)

    def _send_all(self):
        self._sends_soon = False
        self._in_turn = True
        self._end_turn()


cdef class PlainSocket(DirectOutlet):
    """One native socket, with the methods of an asyncio Transport that connections use."""

    cdef PlainSockets _all
    cdef object _socket
    cdef int _descriptor
    cdef object _protocol
    cdef Connection _connection
    cdef list _parts
    cdef Py_ssize_t _of_first
    cdef Py_ssize_t _unsent
    cdef bint _is_due
    cdef bint _waits
    cdef bint _full
    cdef bint _reading
    cdef bint _paused
    cdef bint _ended
    cdef bint _no_more
    cdef bint _closing
    cdef bint _given_up
    cdef bint _failed
    cdef bint _lost

    def __init__(self, PlainSockets all_of_loop, plain, protocol):
        self._all = all_of_loop
        self._socket = plain
        self._descriptor = plain.fileno()
        self._protocol = protocol
        self._connection = protocol if isinstance(protocol, Connection) else None  # its methods can be called natively
        self._parts = []

    def get_extra_info(self, name):
        """Return `socket`, `peername` or `sockname`, or None if it is not known."""
        if name == "socket":
            return self._socket
        try:
            if name == "peername":
                return self._socket.getpeername()
            if name == "sockname":
                return self._socket.getsockname()
        except OSError:  # the peer has disconnected
            pass
        return None

    def is_closing(self):
        return self._closing

    def get_write_buffer_size(self):
        return self._unsent

    def write(self, data):
        cdef Py_ssize_t count = len(data)
        if count == 0 or self._closing or self._no_more:
            return
        self._parts.append(data)
        self._unsent += count
        self._is_there_more()

    cdef int put(self, const char *data, Py_ssize_t size) except -1:
        cdef ssize_t count = 0
        if self._unsent > 0 and not self._waits:
            self._send()
        if self._closing or self._no_more:
            return 0
        if self._unsent == 0:
            count = send(self._descriptor, data, size, MSG_NOSIGNAL)
            if count < 0:
                if errno != EAGAIN and errno != EINTR:
                    self._give_up(_error(errno))
                    return 0
                count = 0
        if count < size:
            self.write(PyBytes_FromStringAndSize(data + count, size - count))
        return 0

    def writelines(self, parts):
        if self._closing or self._no_more:
            return
        for data in parts:
            if len(data) > 0:
                self._parts.append(data)
                self._unsent += len(data)
        if self._unsent > 0:
            self._is_there_more()

    def write_eof(self):
        if self._closing or self._no_more:
            return
        self._no_more = True
        if self._unsent == 0:
            self._shut_down()

    def pause_reading(self):
        # The loop keeps watching until data arrive, because most pauses end earlier.
        self._paused = True

    def resume_reading(self):
        self._paused = False
        self._start_reading()

    def close(self):
        if self._closing:
            return
        self._closing = True
        self._stop_reading()
        if self._unsent == 0:
            self._all.loop.call_soon(self._lose, None)

    def abort(self):
        self._give_up(None)

    cdef _begin(self):
        self._protocol.connection_made(self)
        if not self._paused:
            self._start_reading()

    cdef _has_failed(self):
        # Bytes that arrived before the reset are still read. After them recv() returns the error.
        self._failed = True
        self._stop_reading()
        if self._paused and self._waits:
            self._writable()
        self._read_to_end()

    def _read_to_end(self):
        if not (self._paused or self._closing or self._ended):
            self._take()

    cdef _start_reading(self):
        if self._failed:
            self._all.loop.call_soon(self._read_to_end)
        elif not self._reading and not self._closing and not self._ended:
            self._reading = True
            self._all.loop.add_reader(self._descriptor, self._readable)

    cdef _stop_reading(self):
        if self._reading:
            self._reading = False
            self._all.loop.remove_reader(self._descriptor)

    def _readable(self):
        if self._paused:
            self._stop_reading()
            return
        self._take()

    cdef _take(self):
        # Do one recv(), or read all remaining bytes of a failed socket.
        self._all._in_turn = True
        try:
            self._receive()
            while self._failed and not (self._paused or self._closing or self._ended):
                self._receive()
        # An internal error. If the socket stayed open, the loop would call this again at once, forever.
        except Exception as error:
            self._all.loop.call_exception_handler({"message": "a connection cannot be read", "exception": error})
            self._give_up(error)
        finally:
            self._all._end_turn()

    cdef _receive(self):
        cdef Py_buffer room
        cdef ssize_t count
        cdef int error
        cdef Connection connection = self._connection
        buffer = self._protocol.get_buffer(-1) if connection is None else connection.get_buffer(-1)
        PyObject_GetBuffer(buffer, &room, PyBUF_SIMPLE | PyBUF_WRITABLE)
        count = recv(self._descriptor, room.buf, room.len, 0)
        error = errno
        PyBuffer_Release(&room)
        if count > 0:
            if connection is None:
                self._protocol.buffer_updated(count)
            else:
                connection.buffer_updated(count)
        elif count == 0:
            self._ended = True
            self._stop_reading()
            if not self._protocol.eof_received():
                self.close()
        elif error == EAGAIN:
            if self._failed:  # the event did not report a reset
                self._failed = False
                self._start_reading()
        elif error != EINTR:
            self._give_up(_error(error))

    cdef _is_there_more(self):
        if self._waits:  # waits until the socket is writable
            self._report_full()
        elif self._unsent > _HIGH_WATER_BYTES:
            self._send()
        elif not self._is_due:
            self._is_due = True
            self._all._has_written(self)

    def _writable(self):
        self._all._in_turn = True
        try:
            self._send()
        finally:
            self._all._end_turn()

    cdef _send(self):
        cdef ssize_t count, wanted
        if self._given_up:
            return
        while self._unsent > 0:
            count = self._send_some(&wanted)
            if count == -EINTR:
                continue
            if count == -EAGAIN:
                break
            if count < 0:
                self._give_up(_error(-count))
                return
            self._sent(count)
            if count < wanted:
                break
        if self._unsent > 0:
            if not self._waits:
                self._waits = True
                self._all.loop.add_writer(self._descriptor, self._writable)
            self._report_full()
        if self._unsent <= _LOW_WATER_BYTES and self._full:
            self._full = False
            self._protocol.resume_writing()
        if self._unsent == 0:
            self._all_is_sent()

    cdef ssize_t _send_some(self, ssize_t *wanted) except? -1:
        # Returns the number of bytes that one system call accepted, or its negated error number.
        cdef iovec vector[_MOST_PARTS]
        cdef Py_buffer held[_MOST_PARTS]
        cdef msghdr message
        cdef Py_ssize_t at, parts = 0
        cdef ssize_t count = 0
        wanted[0] = 0
        try:
            for at in range(min(<Py_ssize_t>len(self._parts), <Py_ssize_t>_MOST_PARTS)):
                PyObject_GetBuffer(self._parts[at], &held[at], PyBUF_SIMPLE)
                parts += 1
                vector[at].iov_base = held[at].buf
                vector[at].iov_len = held[at].len
                wanted[0] += held[at].len
            vector[0].iov_base = <char *>vector[0].iov_base + self._of_first
            vector[0].iov_len -= self._of_first
            wanted[0] -= self._of_first
            if parts == 1:
                count = send(self._descriptor, vector[0].iov_base, vector[0].iov_len, MSG_NOSIGNAL)
            else:
                memset(&message, 0, sizeof(message))
                message.msg_iov = vector
                message.msg_iovlen = parts
                count = sendmsg(self._descriptor, &message, MSG_NOSIGNAL)
            if count < 0:
                count = -errno
        finally:
            for at in range(parts):
                PyBuffer_Release(&held[at])
        return count

    cdef _sent(self, Py_ssize_t count):
        cdef Py_ssize_t done = 0, length
        self._unsent -= count
        if self._unsent == 0:
            self._parts.clear()
            self._of_first = 0
            return
        count += self._of_first
        while True:
            length = len(self._parts[done])
            if count < length:
                break
            count -= length
            done += 1
        self._of_first = count
        if done > 0:
            del self._parts[:done]

    cdef _all_is_sent(self):
        if self._waits:
            self._waits = False
            self._all.loop.remove_writer(self._descriptor)
        if self._closing:
            self._all.loop.call_soon(self._lose, None)
        elif self._no_more:
            self._shut_down()

    cdef _report_full(self):
        if self._unsent > _HIGH_WATER_BYTES and not self._full:
            self._full = True
            self._protocol.pause_writing()

    cdef _shut_down(self):
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:  # the peer has disconnected, as recv() will report
            pass

    cdef _give_up(self, error):
        # Sends nothing more. The protocol's connection_lost is called in a later loop iteration.
        if self._given_up:
            return
        self._given_up = True
        self._closing = True
        self._unsent = 0
        self._parts.clear()
        self._stop_reading()
        if self._waits:
            self._waits = False
            self._all.loop.remove_writer(self._descriptor)
        self._all.loop.call_soon(self._lose, error)

    def _lose(self, error):
        if self._lost:
            return
        self._lost = True
        del self._all._open[self._descriptor]
        try:
            self._protocol.connection_lost(error)
        finally:
            self._protocol = self._connection = None
            self._socket.close()


cdef _error(int number):
    return OSError(number, os.strerror(number))
