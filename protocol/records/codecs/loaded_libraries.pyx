"""C functions of libraries that packages in use have loaded already, called without a Python object in between.

A package's call takes views of what it reads and writes, and hands the interpreter over and back; for 64 KiB that is as
much work again as the checksum itself. A package that was built so that it shows its functions to nobody leaves None
here, and its Python call stays.
"""

import isal.igzip_lib
import lz4.frame._frame

cdef extern from "dlfcn.h" nogil:
    void *dlopen(const char *path, int mode)
    void *dlsym(void *library, const char *name)
    enum:
        RTLD_NOW


cdef void *_shown(module, const char *name):
    path = module.__file__.encode()
    cdef void *library = dlopen(path, RTLD_NOW)
    return NULL if library == NULL else dlsym(library, name)


# lz4.h: bytes written to `room`, or less than 0.
lz4_decompress_safe = <Lz4DecompressSafe>_shown(lz4.frame._frame, b"LZ4_decompress_safe")
# crc.h: the remainder as it is before the last inversion.
crc32_iscsi = <Crc32Iscsi>_shown(isal.igzip_lib, b"crc32_iscsi")


def found():
    """The names of what was found, for the tests."""
    return [name for name, is_there in (
        ("LZ4_decompress_safe", lz4_decompress_safe != NULL), ("crc32_iscsi", crc32_iscsi != NULL),
    ) if is_there]
