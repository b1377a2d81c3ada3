# cython: language_level=3
"""Where Python's objects live from now on: with the C library, which gives back what is free.

CPython's own allocator gives an arena of a MiB back when nothing in it is left, and of thousands of sessions that came
at once something small always is, in nearly each of them: tens of megabytes stayed. The C library gives back page by
page (`allocator.Allocator.trim`). What was made before stays where it is: CPython's `free` and `realloc` know by an
address whose it is.
"""

cdef extern from "Python.h" nogil:
    ctypedef struct PyMemAllocatorEx:
        void *ctx
        void *(*malloc)(void *ctx, size_t size)
        void *(*calloc)(void *ctx, size_t count, size_t size)
        void *(*realloc)(void *ctx, void *block, size_t size)
        void (*free)(void *ctx, void *block)

    ctypedef enum PyMemAllocatorDomain:
        PYMEM_DOMAIN_OBJ

    void PyMem_GetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator)
    void PyMem_SetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator)
    void *PyMem_RawMalloc(size_t size)
    void *PyMem_RawCalloc(size_t count, size_t size)


cdef void *_malloc(void *ctx, size_t size) noexcept nogil:
    return PyMem_RawMalloc(size)


cdef void *_calloc(void *ctx, size_t count, size_t size) noexcept nogil:
    return PyMem_RawCalloc(count, size)


def use_the_c_library() -> None:
    """Once, at the start."""
    cdef PyMemAllocatorEx allocator
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &allocator)
    allocator.malloc = _malloc
    allocator.calloc = _calloc
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &allocator)
