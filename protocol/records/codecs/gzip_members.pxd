# The types that Cython compiles gzip_members.py with; the file itself stays plain Python.
cimport cython
