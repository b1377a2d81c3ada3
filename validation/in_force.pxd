# The types that Cython compiles in_force.py with; the file itself stays plain Python.
cimport cython


cdef class RulesInForce:
    cdef readonly object rulebook
    cdef readonly long long generation
    cdef _replace(self, rulebook)
