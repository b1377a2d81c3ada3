# The types that Cython compiles clock.py with; the file itself stays plain Python.
cimport cython
