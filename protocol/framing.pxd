# The types that Cython compiles framing.py with; the file itself stays plain Python.
cimport cython

cdef Py_ssize_t _SIZE_BYTES
cdef Py_ssize_t _LEAST_ROOM_BYTES
cdef Py_ssize_t _MOST_ROOM_BYTES


cdef class OrdinaryFrames:
    cdef readonly Py_ssize_t taken
    cdef readonly bint settled
    cdef readonly Py_ssize_t left

    cpdef Py_ssize_t take(self, object data, Py_ssize_t position, Py_ssize_t end) except -1

    cpdef object rest_buffer(self)

    cpdef bytearray take_rest(self, Py_ssize_t count)

    cpdef drop(self)


cdef class FrameReader:
    cdef public bint suspended
    cdef readonly Py_ssize_t frames_ended
    cdef readonly bint settled
    cdef object _handler
    cdef OrdinaryFrames _ordinary
    cdef object _pool
    cdef Py_ssize_t _prefix_bytes
    cdef Py_ssize_t _max_frame_bytes
    cdef bytes _prefix
    cdef Py_ssize_t _size
    cdef Py_ssize_t _pass_left
    cdef bytearray _frame
    cdef Py_ssize_t _filled
    cdef Py_ssize_t _room

    cpdef begun(self)

    @cython.locals(position=Py_ssize_t, start=Py_ssize_t, count=Py_ssize_t, ordinary=OrdinaryFrames)
    cpdef Py_ssize_t receive(self, object data, Py_ssize_t end) except -1

    cpdef drop(self)

    cpdef forget(self)

    @cython.locals(ordinary=OrdinaryFrames)
    cpdef gathering_view(self)

    @cython.locals(ordinary=OrdinaryFrames)
    cpdef gathered(self, Py_ssize_t count)

    cdef bint _ordinary_has_begun(self) except -1

    @cython.locals(frame=bytearray)
    cdef _take_rest(self, OrdinaryFrames ordinary, Py_ssize_t count)

    @cython.locals(size=Py_ssize_t, start=Py_ssize_t, head=bytes)
    cdef Py_ssize_t _begin(self, object data, Py_ssize_t position, Py_ssize_t end) except -1

    @cython.locals(have=Py_ssize_t, want=Py_ssize_t, count=Py_ssize_t)
    cdef Py_ssize_t _collect_prefix(self, object data, Py_ssize_t position, Py_ssize_t end) except -1

    cdef _prefix_is_there(self)

    cdef _reject(self, Py_ssize_t size, object prefix)

    cdef _gather(self, bytearray buffer, bytes head)

    @cython.locals(count=Py_ssize_t)
    cdef Py_ssize_t _fill(self, object data, Py_ssize_t position, Py_ssize_t end) except -1

    @cython.locals(frame=bytearray)
    cdef _finish_or_grow(self)
