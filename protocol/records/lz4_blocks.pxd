# The types that Cython compiles lz4_blocks.py with; the file itself stays plain Python.
cimport cython

from protocol.records.plain_buffer cimport PlainBuffer


@cython.locals(position=Py_ssize_t, block_bytes=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
cpdef read_lz4_frame(data, PlainBuffer plain)
