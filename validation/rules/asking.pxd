# The types that Cython compiles asking.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.records.codecs.decompression_budget cimport Allowance
from sluicegate.protocol.records.contents cimport RecordContents
from sluicegate.validation.rules.rule cimport RuledRecord

cdef Py_ssize_t _QUESTION_WORK
cdef Py_ssize_t _STEP_WORK
cdef Py_ssize_t _MOST_STEPS
cdef Py_ssize_t _MOST_HEADERS


@cython.final
cdef class _Asking:
    cdef readonly object rejecting
    cdef readonly object observing
    cdef Allowance _allowance
    cdef list _asked
    cdef set _has_explained
    cdef object _of_headers
    cdef RuledRecord _record

    cpdef ask(self, contents)

    @cython.locals(record=RuledRecord)
    cdef int _ask_about_records(self, RecordContents of) except -1

    @cython.locals(work=Py_ssize_t, steps=Py_ssize_t, reads_key=bint, reads_value=bint)
    cdef int _ask_about(self, RuledRecord record) except -1

    cdef object _explained(self, named, RuledRecord record, words)

    cdef _note(self, named, RuledRecord record, words)

    cdef _schema_fails(self, named, RuledRecord record, error)

    cdef _rule_is_out(self, named, outage)
