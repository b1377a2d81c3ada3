"""Compression codecs as the low three bits of a batch's attributes name them."""

from enum import IntEnum


class Codec(IntEnum):
    """Codec ids on the wire; 5 to 7 name nothing."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
