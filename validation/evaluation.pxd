# The types that Cython compiles evaluation.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget
from sluicegate.protocol.records.contents cimport RecordContents
from sluicegate.validation.rules.rule cimport RuledRecord, StepBudget

cdef Py_ssize_t _RULE_WORK
cdef Py_ssize_t _STEP_WORK
cdef Py_ssize_t _MOST_STEPS
cdef Py_ssize_t _MOST_HEADERS


cdef class _WorkBudget(StepBudget):
    cdef DecompressionBudget _work

    cpdef spend(self, steps)


@cython.final
cdef class _Evaluation:
    cdef readonly object rejecting
    cdef readonly object observing
    cdef DecompressionBudget _budget
    cdef list _rules
    cdef tuple _looking_ahead
    cdef set _costly
    cdef _WorkBudget _steps
    cdef dict _explaining
    cdef object _of_headers
    cdef RuledRecord _record

    cpdef run(self, contents)

    @cython.locals(record=RuledRecord)
    cdef int _evaluate_records(self, RecordContents of) except -1

    cdef _evaluate_ahead(self, of)

    cdef _evaluate_read(self, list read)

    @cython.locals(work=Py_ssize_t, reads_key=bint, reads_value=bint)
    cdef int _evaluate(self, RuledRecord record) except -1

    cdef object _explained(self, named, RuledRecord record, text)

    cdef _note(self, named, RuledRecord record, text)

    cdef _note_headers(self, RuledRecord record, count)

    cdef _note_schema_error(self, named, RuledRecord record, error)

    cdef _note_outage(self, named, outage)
