"""Compresses a payload as clients do, so that every consumer can read it.

Snappy in xerial's framing with 32 KiB blocks, as Java writes it; lz4 as one frame of independent blocks, because Java
cannot read linked blocks.
"""

import zlib
from struct import Struct

import lz4.frame
import zstandard

from sluicegate.protocol.records.codecs.codec import Codec

_SIZE = Struct(">i")
_XERIAL = b"\x82SNAPPY\x00" + _SIZE.pack(1) + _SIZE.pack(1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_GZIP = 16 + zlib.MAX_WBITS


def compress(codec: Codec, data: bytes | bytearray) -> bytes:
    """Return the payload in a codec's format; unchanged for Codec.NONE."""
    match codec:
        case Codec.GZIP:
            packer = zlib.compressobj(wbits=_GZIP)
            return packer.compress(data) + packer.flush()
        case Codec.SNAPPY:
            return _xerial(data)
        case Codec.LZ4:
            packed: bytes = lz4.frame.compress(data, block_linked=False, store_size=False)
            return packed
        case Codec.ZSTD:
            return zstandard.ZstdCompressor().compress(data)
    return bytes(data)


def _xerial(data: bytes | bytearray) -> bytes:
    import cramjam  # noqa: PLC0415  # only for snappy

    parts = [_XERIAL]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_SIZE.pack(len(block)), block)
    return b"".join(parts)
