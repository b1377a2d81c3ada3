"""The reference implementation of each codec decompresses payloads that were compressed at once or in pieces."""

import gzip
import struct

import cramjam
import lz4.frame
import pytest
import zstandard

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.compression import PIECE_BYTES, compress, compressor_of
from sluicegate.protocol.records.codecs.decompression import Decompressor

PLAIN = b"".join(b"%d of many records;" % (i * i) for i in range(12_000))


def read(codec: Codec, data: bytes) -> bytes:
    match codec:
        case Codec.GZIP:
            return gzip.decompress(data)
        case Codec.SNAPPY:
            return _xerial(data)
        case Codec.LZ4:
            assert data[4] >> 5 & 1, "Java cannot read linked blocks"
            return bytes(lz4.frame.decompress(data))
        case Codec.ZSTD:
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


def _xerial(data: bytes) -> bytes:
    assert data[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    at, plain = 16, b""
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        block = bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
        assert len(block) <= 32 * 1024, "Java writes no larger blocks"
        plain, at = plain + block, at + 4 + size
    return plain


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("size", [0, 1, 32 * 1024, PIECE_BYTES, 2 * PIECE_BYTES, 200_000])
def test_compressed_payload_is_decompressed_by_reference_libraries(codec: Codec, size: int) -> None:
    plain, compressor = PLAIN[:size], compressor_of(codec)
    last = size // PIECE_BYTES * PIECE_BYTES
    pieces = [compressor.add(plain[at : at + PIECE_BYTES]) for at in range(0, last, PIECE_BYTES)]

    for packed in (compress(codec, plain), b"".join((*pieces, compressor.end(plain[last:])))):
        found = Decompressor().decompress(codec, memoryview(packed), 1 << 30)

        assert read(codec, packed) == plain
        assert (bytes(found.data), found.failure, found.oddity) == (plain, None, None)
