# The types that Cython compiles lz4_blocks.py with; the file itself stays plain Python.
cimport cython
