# The types that Cython compiles policy.py with; the file itself stays plain Python.
cimport cython
