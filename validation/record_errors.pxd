# The types that Cython compiles record_errors.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.records.record_batch cimport RecordBatch
from sluicegate.validation.timestamps cimport TimeWindow


@cython.locals(keys=int)
cpdef int what_to_look_for(RecordBatch batch, TimeWindow window, bint compacted) except -1

cdef _time_of_all(RecordBatch batch)
