# The types that Cython compiles headers.py with; the file itself stays plain Python.
cimport cython
