"""All codecs decompress data from their reference implementations, within limits."""

import gzip
import os

import pytest
import zstandard

from sluicegate.protocol.records.codecs.codec import Codec, DamagedPayload, Failure, OddPayload, PlainBuffer
from sluicegate.protocol.records.codecs.decompression import Decompressed, Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, PayloadLimits
from sluicegate.protocol.records.codecs.zstd_frames import frame_at, zstd_pieces
from tests.wire.batches import CODECS, NONE, XERIAL, compress

PLAIN = os.urandom(2000) + bytes(3_000_000)
NAMES = [name for name, codec in CODECS.items() if codec != NONE]


def decompress(codec: Codec, data: memoryview, limit: int) -> Decompressed:
    return Decompressor().decompress(codec, data, limit)


def codec_and_payload(name: str, data: bytes = PLAIN) -> tuple[Codec, memoryview]:
    codec = CODECS[name]
    return Codec.SNAPPY if codec == XERIAL else Codec(codec), memoryview(compress(codec, data))


@pytest.mark.parametrize("name", NAMES)
def test_decompresses_payload_up_to_the_size_limit(name: str) -> None:
    found = decompress(*codec_and_payload(name), limit=len(PLAIN))

    assert (found.data, found.failure) == (PLAIN, None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [len(PLAIN) - 1, 1000, 0])
def test_decompression_stops_at_the_size_limit(name: str, limit: int) -> None:
    found = decompress(*codec_and_payload(name), limit=limit)

    assert found.failure is Failure.OVER_LIMIT
    assert len(found.data) <= limit


@pytest.mark.parametrize("name", NAMES)
def test_truncated_payload_is_damaged_and_decompressed_up_to_the_cut(name: str) -> None:
    codec, data = codec_and_payload(name)

    found = decompress(codec, data[: len(data) * 3 // 4], limit=len(PLAIN))

    assert found.failure is Failure.DAMAGED
    assert PLAIN.startswith(found.data)


@pytest.mark.parametrize("name", NAMES)
def test_random_bytes_are_reported_as_a_damaged_payload(name: str) -> None:
    codec, _ = codec_and_payload(name)
    assert decompress(codec, memoryview(b"no such thing"), limit=10_000).failure is Failure.DAMAGED


def test_decompresses_all_concatenated_gzip_members_and_zstd_frames() -> None:
    for codec, data in (
        (Codec.GZIP, gzip.compress(b"a") + gzip.compress(b"b")),
        (Codec.ZSTD, zstandard.compress(b"a") + zstandard.compress(b"b")),
    ):
        assert decompress(codec, memoryview(data), limit=10).data == b"ab"


def test_zstd_content_size_beyond_the_limit_is_rejected() -> None:
    small = zstandard.ZstdCompressor(write_content_size=True).compress(bytes(10_000_000))

    found = decompress(Codec.ZSTD, memoryview(small), limit=1000)

    assert found.failure is Failure.OVER_LIMIT


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("size_in_frame", [True, False])
@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000, 1_000_000])
def test_frame_at_returns_the_end_of_zstd_and_skippable_frames(checksum: bool, size_in_frame: bool, size: int) -> None:
    compressor = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=size_in_frame)
    frame = compressor.compress(os.urandom(size // 2) + bytes(size - size // 2))

    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"

    def end_of(data: bytes, position: int = 0) -> int | None:
        found = frame_at(memoryview(data), position, DecompressionBudget(0, 0, lambda: None))
        return found.end if found is not None else None

    assert end_of(frame) == len(frame)
    assert end_of(frame + skippable + frame) == len(frame)
    assert end_of(skippable + frame) == len(skippable)
    assert end_of(skippable + frame, len(skippable)) == len(skippable + frame)
    cut = end_of(frame[:-1])
    assert cut is None or cut > len(frame) - 1
    assert end_of(frame + b"x", len(frame)) is None


@pytest.mark.parametrize(
    ("missing", "error"),
    [
        (1, OddPayload),
        (0x7FFFFFFF, OddPayload),
        (0xFFFFFF88, OddPayload),
        (0xFFFFFF89, DamagedPayload),
        (0xFFFFFFFC, DamagedPayload),
    ],
)
def test_truncated_zstd_skippable_frame_is_handled_as_by_zstd_jni(missing: int, error: type[Exception]) -> None:
    """Kafka's validator with zstd-jni 1.5.6 behaves so for each size from 0xFFFFFF80 to 0xFFFFFFFF."""
    cut = b"\x50\x2a\x4d\x18" + (missing + 3).to_bytes(4, "little") + b"abc"
    data = memoryview(zstandard.compress(b"records") + cut)
    budget = DecompressionBudget(1 << 20, 1 << 20, lambda: None)

    with pytest.raises(error):
        list(zstd_pieces(data, zstandard.ZstdDecompressor(), PlainBuffer(), PayloadLimits(1 << 20, 1 << 20, budget)))


def test_plain_buffer_is_reused_for_a_smaller_size() -> None:
    plain = PlainBuffer()
    plain.grow_to(100)[:3] = b"abc"

    assert plain.grow_to(50)[:3] == b"abc"


def test_plain_buffer_keeps_content_on_growth_and_frees_memory_on_shrink() -> None:
    plain = PlainBuffer()
    plain.grow_to(5)[:5] = b"first"
    assert plain.grow_to(32 << 20, 5)[:5] == b"first"

    plain.shrink()
    assert len(plain.grow_to(1)) < 1 << 20
