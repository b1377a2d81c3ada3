# CRC-32C by the processor's instruction, for the fast path, which calls it without Python objects. Other code uses the
# crc32c package, and so does the fast path if has_native_crc32c() is false.
#
# The instruction takes three cycles, and one can start in each cycle. So a longer run is split into three parts, whose
# remainders are combined by a carry-less multiplication ("Fast CRC Computation for iSCSI Polynomial Using CRC32
# Instruction", Intel 2011): the remainder of a part followed by n zero bits is that of the part times x^n.
from libc.stdint cimport uint8_t, uint32_t

cdef extern from *:
    """
    #ifndef SLUICEGATE_NATIVE_CRC32C
    #define SLUICEGATE_NATIVE_CRC32C
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define SG_CRC_TARGET __attribute__((target("sse4.2,pclmul")))

    static int has_native_crc32c(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    }

    SG_CRC_TARGET static inline uint64_t sg_eight(const uint8_t *at) {
        uint64_t value;
        memcpy(&value, at, 8);
        return value;
    }

    /* x to the power of `bits` modulo the polynomial, bits reflected; `bits` is at least 31. */
    SG_CRC_TARGET static uint32_t sg_power(uint64_t bits) {
        uint64_t halvings = 1;
        uint32_t power;
        /* Squaring a reflected value shifts it by one, and reducing it by the instruction multiplies by x^32. */
        while (bits > 191) { halvings = halvings << 1 | (bits & 1); bits = (bits >> 1) - 16; }
        power = 0x80000000u >> (bits & 31);
        for (bits >>= 5; bits > 0; bits--) power = _mm_crc32_u32(power, 0);
        while (halvings > 1) {
            __m128i value = _mm_cvtsi32_si128((int)power);
            uint64_t square = (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(value, value, 0));
            power = (uint32_t)_mm_crc32_u64(0, square << (~halvings & 1));
            halvings >>= 1;
        }
        return power;
    }

    SG_CRC_TARGET static inline uint64_t sg_moved(uint32_t crc, size_t bytes) {
        __m128i by = _mm_cvtsi32_si128((int)sg_power(bytes * 8 - 33));
        return (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), by, 0));
    }

    SG_CRC_TARGET static uint32_t native_crc32c(const uint8_t *at, size_t size) {
        uint64_t crc = 0xffffffffu;
        if (size >= 768) {
            size_t part = (size - 8) / 24 * 8;
            uint64_t second = 0, third = 0;
            const uint8_t *end = at + part;
            for (; at < end; at += 8) {
                crc = _mm_crc32_u64(crc, sg_eight(at));
                second = _mm_crc32_u64(second, sg_eight(at + part));
                third = _mm_crc32_u64(third, sg_eight(at + 2 * part));
            }
            at += 2 * part;
            size -= 3 * part;
            crc = sg_moved((uint32_t)crc, 2 * part + 8) ^ sg_moved((uint32_t)second, part + 8) ^ sg_eight(at);
            crc = _mm_crc32_u64(third, crc);
            at += 8;
            size -= 8;
        }
        for (; size >= 8; at += 8, size -= 8) crc = _mm_crc32_u64(crc, sg_eight(at));
        for (; size > 0; at++, size--) crc = _mm_crc32_u8((uint32_t)crc, *at);
        return (uint32_t)crc ^ 0xffffffffu;
    }
    #else
    static int has_native_crc32c(void) { return 0; }
    static uint32_t native_crc32c(const uint8_t *at, size_t size) { (void)at; (void)size; return 0; }
    #endif
    #endif
    """
    bint has_native_crc32c() noexcept
    uint32_t native_crc32c(const uint8_t *at, size_t size) noexcept
