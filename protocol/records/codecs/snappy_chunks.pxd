# The types that Cython compiles snappy_chunks.py with; the file itself stays plain Python.
cimport cython
