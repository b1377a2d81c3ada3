"""Small batches that are expensive to validate: at least one batch for each limit on validation."""

import gzip
import struct
import time
from collections.abc import Callable
from functools import cache

import lz4.frame
import zstandard

from tests.bounds.frames import int32
from tests.wire.batches import (
    CODECS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    Rec,
    batch,
    compress,
    identical_records,
    message,
    wrapper,
)

MIB = 1 << 20
COMPRESSED = {name: codec for name, codec in CODECS.items() if codec != NONE}
_SMALLEST = Rec(0, None, None)
_SMALLEST_BYTES = 10  # an upper bound for the counts in this file


def now() -> int:
    return time.time_ns() // 1_000_000


@cache
def bad_records(codec: int, count: int) -> bytes:
    """Return a batch of `count` records with timestamps in microseconds."""
    stamp = now() * 1000
    payload = identical_records(_SMALLEST, count, 0)
    return batch([], codec, payload=payload, count=count, base_timestamp=stamp, max_timestamp=stamp)


@cache
def small_batch_of(codec: int, plain_bytes: int) -> bytes:
    """Return a batch of one good record with a value of zeros."""
    return batch([Rec(now(), value=bytes(plain_bytes))], codec)


@cache
def batch_as_message_set(magic: int, codec: int, count: int) -> bytes:
    """Return a compressed message set of `count` inner messages in an old format."""
    inner = message(magic, b"", key=None, timestamp=now())
    return wrapper(magic, [inner * count], codec, offset=count - 1, timestamp=now())


def _with(codec: int, compressed: bytes) -> bytes:
    return batch([], codec, compressed=compressed, count=1, base_timestamp=now(), max_timestamp=now())


def small_zstd_frames(size: int) -> bytes:
    one = zstandard.compress(b"\0")
    return _with(ZSTD, one * (size // len(one)))


def empty_zstd_frames(size: int) -> bytes:
    one = zstandard.compress(b"")
    return _with(ZSTD, one * (size // len(one)))


def skippable_zstd_frames(size: int) -> bytes:
    one = struct.pack("<II", 0x184D2A50, 0)
    return _with(ZSTD, one * (size // len(one)))


def empty_zstd_blocks(size: int) -> bytes:
    """Return one frame of empty raw blocks."""
    return _with(ZSTD, b"\x28\xb5\x2f\xfd\x00\x58" + b"\0\0\0" * (size // 3) + b"\1\0\0")


def gzip_members(size: int) -> bytes:
    one = gzip.compress(b"")
    return _with(GZIP, one * (size // len(one)))


def gzip_members_of_a_byte(size: int) -> bytes:
    one = gzip.compress(b"\0")
    return _with(GZIP, one * (size // len(one)))


def damaged_gzip(size: int) -> bytes:
    """Return stored bytes that do not match their checksum."""
    stored = gzip.compress(bytes(range(256)) * (size // 256), compresslevel=0)
    return _with(GZIP, stored[:-8] + b"\1" * 8)


def gzip_cut_within(size: int) -> bytes:
    return _with(GZIP, gzip.compress(bytes(range(256)) * (size // 256), compresslevel=0)[:-100])


def checked_lz4(size: int) -> bytes:
    """Return LZ4 with checksums of each block and of the content."""
    data = bytes(range(256)) * (size // 256)
    return _with(LZ4, lz4.frame.compress(data, block_linked=False, content_checksum=True, block_checksum=True))


def tiny_lz4_blocks(size: int) -> bytes:
    """Return LZ4 blocks of one stored byte each."""
    head = lz4.frame.compress(b"", block_linked=False)[:-4]
    return _with(LZ4, head + (struct.pack("<I", 0x80000001) + b"\0") * (size // 5) + bytes(4))


def tiny_xerial_blocks(size: int) -> bytes:
    block = compress(SNAPPY, b"\0")
    framed = (int32(len(block)) + block) * (size // (4 + len(block)))
    return _with(SNAPPY, b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed)


def empty_xerial_blocks(size: int) -> bytes:
    return _with(SNAPPY, b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + (int32(1) + b"\0") * (size // 5))


def xerial_streams(size: int) -> bytes:
    """Return a sequence of xerial headers without blocks."""
    return _with(SNAPPY, (b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)) * (size // 16))


def zstd_window(size: int) -> bytes:
    """Return a frame that needs the largest window that brokers accept (128 MiB), and fills it."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = compressor.compress(bytes(range(256)) * (size // 256)) + compressor.compress(bytes(120 * MIB))
    return _with(ZSTD, data + compressor.flush())


def zstd_window_only(_size: int) -> bytes:
    """Return a frame of 13 bytes that needs a window of 128 MiB."""
    return _with(ZSTD, b"\x28\xb5\x2f\xfd\x00\x88\x03\x00\x10\x00")


def zstd_claims(_size: int) -> bytes:
    """Return a frame that declares 100 MB of content and has almost none."""
    return _with(ZSTD, b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", 100_000_000) + b"\x01\x00\x00")


def snappy_claims(size: int) -> bytes:
    """Return a raw block that declares 32 times its size."""
    claim, out = 32 * size, bytearray()
    while claim > 0x7F:
        out.append(claim & 0x7F | 0x80)
        claim >>= 7
    return _with(SNAPPY, bytes(out) + bytes([claim]) + bytes(size))


def decompression_bomb(codec: int) -> Callable[[int], bytes]:
    """Return a function that makes a batch with one record of zeros."""
    return lambda plain_bytes: batch([Rec(now(), value=bytes(plain_bytes))], codec)


def records_of_headers(count: int) -> bytes:
    """Return a batch with one record of `count` empty headers."""
    return batch([Rec(now(), headers=[(b"", b"")] * count)])


def smallest_records(size: int) -> bytes:
    """Return an uncompressed batch of the smallest good records."""
    count = size // _SMALLEST_BYTES
    return batch(
        [], payload=identical_records(_SMALLEST, count, 0), count=count, base_timestamp=now(), max_timestamp=now()
    )


def batches_in_a_row(size: int) -> bytes:
    one = batch([Rec(now())])
    return one * (size // len(one))


def smallest_messages(size: int) -> bytes:
    """Return an uncompressed message set of magic 1."""
    one = message(1, b"", key=None, timestamp=now())
    return one * (size // len(one))
