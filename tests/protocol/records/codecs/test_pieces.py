"""Payloads are decompressed as streams, in small steps, with little memory, which is freed afterwards."""

import gzip
import os
import struct
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import cramjam
import lz4.frame
import pytest
import zstandard

from sluicegate.protocol.records.codecs.codec import Codec, Failure, Piece
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import (
    Abandoned,
    DecompressionBudget,
    OverLimit,
    PayloadLimit,
    PayloadLimits,
)
from sluicegate.protocol.records.codecs.gzip_members import gzip_pieces
from tests.wire.batches import CODECS, NONE, XERIAL, compress

MIB = 1 << 20
LARGE = os.urandom(40_000) + bytes(48 * MIB)
NAMES = [name for name, codec in CODECS.items() if codec not in {NONE, CODECS["snappy"]}]


def payload_limits(
    plain_bytes: int = 1 << 40,
    window_bytes: int = 16 * MIB,
    budget_bytes: int = 1 << 40,
    give_way: Callable[[], None] = lambda: None,
) -> PayloadLimits:
    return PayloadLimits(plain_bytes, window_bytes, DecompressionBudget(budget_bytes, 0, give_way))


def read(decompressor: Decompressor, codec: int, data: bytes, bounds: PayloadLimits) -> tuple[bytes, Failure | None]:
    pieces = decompressor.open(Codec.SNAPPY if codec == XERIAL else Codec(codec), memoryview(data), bounds)
    out = bytearray()
    try:
        while (piece := pieces.more()) is not None:
            out += piece
    finally:
        decompressor.close()
    return bytes(out), pieces.failure


def largest_piece(decompressor: Decompressor, codec: int, data: bytes, bounds: PayloadLimits) -> int:
    """Read all pieces and return the size of the largest."""
    pieces = decompressor.open(Codec.SNAPPY if codec == XERIAL else Codec(codec), memoryview(data), bounds)
    largest = 0
    piece: Piece | None = b""
    while piece is not None:
        largest = max(largest, len(piece))
        piece = pieces.more()
    decompressor.close()
    return largest


@pytest.mark.parametrize("name", NAMES)
def test_decompression_keeps_only_one_piece_in_memory(name: str) -> None:
    data = compress(CODECS[name], LARGE)
    decompressor = Decompressor()
    tracemalloc.start()
    try:
        largest = largest_piece(decompressor, CODECS[name], data, payload_limits())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 0 < largest <= MIB
    assert peak < 9 * MIB  # a zstd window of this level, the largest lz4 block, and a few pieces


@pytest.mark.parametrize("name", [*NAMES, "snappy"])
@pytest.mark.parametrize("most", [1, 7, 1000, 65_536])
def test_decompressed_bytes_do_not_depend_on_the_piece_size(name: str, most: int) -> None:
    plain = (os.urandom(3000) + bytes(5000)) * 20
    data = compress(CODECS[name], plain)
    cut = data[: len(data) * 2 // 3]

    assert read(Decompressor(most), CODECS[name], data, payload_limits()) == (plain, None)
    assert read(Decompressor(most), CODECS[name], cut, payload_limits()) == read(
        Decompressor(), CODECS[name], cut, payload_limits()
    )


EMPTY_MEMBERS = gzip.compress(b"") * 20_000
EMPTY_FRAMES = zstandard.compress(b"") * 20_000
EMPTY_CHUNK = bytes(cramjam.snappy.compress_raw(b""))
EMPTY_CHUNKS = compress(XERIAL, b"") + (struct.pack(">i", len(EMPTY_CHUNK)) + EMPTY_CHUNK) * 20_000
EMPTY_BLOCKS = compress(CODECS["lz4"], b"")[:7] + (struct.pack("<I", 1) + b"\0") * 20_000 + bytes(4)
NESTED_EMPTY_STREAMS = compress(XERIAL, b"") * 20_000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("gzip", EMPTY_MEMBERS),
        ("zstd", EMPTY_FRAMES),
        ("zstd", b"\x50\x2a\x4d\x18\0\0\0\0" * 20_000),
        ("xerial", EMPTY_CHUNKS),
        ("xerial", NESTED_EMPTY_STREAMS),
        ("lz4", EMPTY_BLOCKS),
    ],
)
def test_empty_members_and_frames_count_against_the_decompression_budget(name: str, data: bytes) -> None:
    """Opening a member or frame takes about a microsecond, although it has only a few bytes."""
    with pytest.raises(OverLimit) as over:
        read(Decompressor(), CODECS[name], data, payload_limits(budget_bytes=4 * MIB))
    assert over.value.bound is PayloadLimit.REQUEST


def test_snappy_block_larger_than_the_window_is_rejected_without_allocation() -> None:
    data = compress(CODECS["snappy"], bytes(17 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(OverLimit) as over:
            read(Decompressor(), CODECS["snappy"], data, payload_limits())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert over.value.bound is PayloadLimit.WINDOW
    assert peak < MIB


def zstd_frame_of_zeros(size: int, window_log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log, compression_level=3, write_content_size=0)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(bytes(size)) + compressor.flush()


def test_a_large_zstd_window_with_little_content_is_accepted() -> None:
    """Java always declares a window of 128 MiB at level 22."""
    assert read(Decompressor(), 4, zstd_frame_of_zeros(15 * MIB, 27), payload_limits()) == (bytes(15 * MIB), None)

    with pytest.raises(OverLimit) as over:
        read(Decompressor(), 4, zstd_frame_of_zeros(17 * MIB, 27), payload_limits())
    assert over.value.bound is PayloadLimit.WINDOW
    assert read(Decompressor(), 4, zstd_frame_of_zeros(17 * MIB, 24), payload_limits()) == (bytes(17 * MIB), None)


def test_frees_memory_after_a_large_decompression_window_or_block() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:  # ignores objects of earlier tests
        assert alone.submit(growth_by_large_payloads).result() < 32 * MIB


def growth_by_large_payloads() -> int:
    decompressor = Decompressor()
    resident = resident_bytes()
    read(decompressor, 4, zstd_frame_of_zeros(120 * MIB, 27), payload_limits(window_bytes=1 << 27))
    read(decompressor, 2, compress(2, bytes(15 * MIB)), payload_limits())
    return resident_bytes() - resident


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("name", [*NAMES, "snappy"])
def test_decompression_yields_regularly_and_can_be_abandoned(name: str) -> None:
    called = 0

    def give_way() -> None:
        nonlocal called
        called += 1
        if called == 3:
            raise Abandoned

    plain = bytes(12 * MIB)
    data = compress(CODECS[name], plain)
    decompressor = Decompressor()
    if name == "snappy":
        called = 2  # the decoder returns a whole block at once
    with pytest.raises(Abandoned):
        read(decompressor, CODECS[name], data, payload_limits(give_way=give_way))

    assert read(decompressor, CODECS[name], data, payload_limits()) == (plain, None)


def test_gzip_members_are_read_without_copying_the_remaining_input() -> None:
    """Regression: copying the tail for every member took 28 s for 8 MB. The test counts the input of each decoder
    call."""
    given: list[int] = []

    class CountingStream:
        def __init__(self, data: bytes) -> None:
            self._view = memoryview(data)

        def __len__(self) -> int:
            return len(self._view)

        def __getitem__(self, where: slice) -> memoryview:
            given.append(len(self._view[where]))
            return self._view[where]

    data = gzip.compress(b"x") * 2000
    plain = b"".join(gzip_pieces(CountingStream(data), payload_limits()))

    assert plain == b"x" * 2000
    assert sum(given) < 2000 * 2048


def test_damaged_gzip_member_is_reread_in_small_steps() -> None:
    """Regression: copying the rest for each 16 KiB took 76 s of CPU time for 90 MB."""
    data = gzip.compress(os.urandom(4 * MIB), 1)[:-1000]
    seen, failure = read(Decompressor(), 1, data, payload_limits())
    calls = 0

    def give_way() -> None:
        nonlocal calls
        calls += 1

    assert failure is Failure.DAMAGED
    assert len(seen) > 4 * MIB - 40_000
    assert read(Decompressor(), 1, data, payload_limits(give_way=give_way))[1] is Failure.DAMAGED
    assert calls < 1000


def test_lz4_frame_with_block_checksums_detects_a_damaged_block() -> None:
    plain = os.urandom(100_000) + bytes(300_000)
    data = checked_lz4(plain)

    assert read(Decompressor(), 3, data, payload_limits()) == (plain, None)
    bent = bytearray(data)
    bent[len(data) - 20] ^= 1
    found, failure = read(Decompressor(), 3, bytes(bent), payload_limits())
    assert failure is Failure.DAMAGED
    assert plain.startswith(found)
    assert len(found) >= 5 * 65_536


def checked_lz4(plain: bytes) -> bytes:
    return bytes(lz4.frame.compress(plain, block_size=4, block_linked=False, block_checksum=True))
