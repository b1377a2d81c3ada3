from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef bint is_json(const uint8_t *at, const uint8_t *end, int max_depth) noexcept nogil


cdef struct Name:
    const uint8_t *at
    int64_t size
    int part
    uint64_t bit


cdef struct Part:
    # plan.SchemaPart, for C.
    int types
    int64_t least
    int64_t most
    int64_t min_length
    int64_t max_length
    int64_t min_items
    int64_t max_items
    int items
    int additional
    uint64_t required
    int names_at
    int names
    int slots_at  # names by their hashes, -1 where there is none
    uint64_t slots  # how many, less one
    int words_at
    int words  # -1: any
    int word_slots_at  # the same of words
    uint64_t word_slots


cdef class OrdinaryJsonSchema:
    cdef object _held
    cdef Part *_parts
    cdef Name *_names
    cdef int *_slots
    cdef int _root
    cdef readonly int longest_run

    cdef void _fill_slots(self, int slots_at, uint64_t last, int names_at, int count) noexcept
    cdef int _place_of(self, int slots_at, uint64_t last, int names_at, const uint8_t *key, int64_t size) noexcept
    cdef bint follows(self, const uint8_t *at, const uint8_t *end) noexcept
    cdef const uint8_t *_value(self, const uint8_t *at, const uint8_t *end, int place, int depth) noexcept
    cdef const uint8_t *_object(self, const uint8_t *at, const uint8_t *end, const Part *part, int depth) noexcept
    cdef const uint8_t *_array(self, const uint8_t *at, const uint8_t *end, const Part *part, int depth) noexcept
    cdef const uint8_t *_string(self, const uint8_t *at, const uint8_t *end, const Part *part) noexcept
