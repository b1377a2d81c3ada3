from libc.stdint cimport uint8_t

ctypedef int (*Lz4DecompressSafe)(const uint8_t *data, uint8_t *room, int size, int most) noexcept nogil
ctypedef unsigned int (*Crc32Iscsi)(const uint8_t *data, int size, unsigned int begin) noexcept nogil

cdef Lz4DecompressSafe lz4_decompress_safe
cdef Crc32Iscsi crc32_iscsi
