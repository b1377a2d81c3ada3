# The types that Cython compiles zstd_pieces.py with; the file itself stays plain Python.
cimport cython
