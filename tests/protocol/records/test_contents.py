"""Only the wanted parts of records are extracted, unchanged, with any codec and any piece boundaries."""

import random

import pytest

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import (
    DecompressionBudget,
    OutOfTime,
    OverLimit,
    PayloadLimits,
)
from sluicegate.protocol.records.contents import MOST_HEADERS, RecordContents, WantedParts
from sluicegate.protocol.records.message_contents import MessageContents
from sluicegate.protocol.records.message_set import read_message
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from tests.wire.batches import CODECS, NONE, Rec, batch, message, wrapper

NOW = 1_800_000_000_000
ALL = WantedParts(True, True, True, 1 << 20)
Found = tuple[int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


def budget_with_limit(most_held: int = 1 << 62) -> DecompressionBudget:
    return DecompressionBudget(1 << 30, 0, lambda: None, most_held=most_held)


def read(
    data: bytes, wanted: WantedParts = ALL, given: DecompressionBudget | None = None, most_piece_bytes: int = 64 * 1024
) -> list[Found]:
    given = given or budget_with_limit()
    view = memoryview(data)
    head = RecordBatch(view, 0, len(view))
    decompressor = Decompressor(most_piece_bytes)
    pieces = None
    first: bytes | memoryview = view
    start = HEADER_BYTES
    if head.codec_id:
        pieces = decompressor.open(Codec(head.codec_id), view[HEADER_BYTES:], PayloadLimits(1 << 30, 1 << 24, given))
        first = pieces.more() or b""
        start = 0
    contents = RecordContents(
        first, start, len(first), pieces, head.record_count, head.base_timestamp, wanted, given
    )  # fmt: skip
    found: list[Found] = []
    while contents.read_next():
        assert contents.index == len(found)
        found.append((contents.timestamp, contents.key_size, contents.key, contents.value, contents.headers))
    return found


def random_records(seed: int, count: int = 300) -> list[Rec]:
    chance = random.Random(seed)

    def random_bytes(most: int) -> bytes | None:
        return None if chance.random() < 0.2 else chance.randbytes(chance.randrange(most))

    return [
        Rec(
            NOW + chance.randrange(-(10**6), 10**6),
            random_bytes(40),
            random_bytes(chance.choice((10, 2000))),
            [(chance.randbytes(4), random_bytes(30)) for _ in range(chance.choice((0, 0, 3)))],
        )
        for _ in range(count)
    ]


def size_of(data: bytes | None) -> int:
    return -1 if data is None else len(data)


@pytest.mark.parametrize("codec", list(CODECS))
@pytest.mark.parametrize("most_piece_bytes", [7, 1000, 1 << 20])
def test_extracted_record_contents_equal_the_written_ones(codec: str, most_piece_bytes: int) -> None:
    records = random_records(most_piece_bytes)

    found = read(batch(records, CODECS[codec]), most_piece_bytes=most_piece_bytes)

    assert found == [(r.timestamp, size_of(r.key), r.key, r.value, tuple(r.headers)) for r in records]


def test_extracts_only_the_requested_record_parts() -> None:
    records = random_records(1)
    data = batch(records, CODECS["lz4"])

    sizes = read(data, WantedParts(False, False, False, 0), most_piece_bytes=100)
    assert sizes == [(r.timestamp, size_of(r.key), None, None, ()) for r in records]
    keys = read(data, WantedParts(True, False, False, 1 << 20), most_piece_bytes=100)
    assert [key for _, _, key, _, _ in keys] == [r.key for r in records]


def test_record_timestamps_overflow_as_in_java() -> None:
    far = [Rec(2**63 - 1), Rec(-(2**63)), Rec(-1)]
    assert [time for time, *_ in read(batch(far))] == [2**63 - 1, -(2**63), -1]


def test_record_part_across_pieces_is_limited_in_size() -> None:
    data = batch([Rec(NOW, b"k", bytes(50_000))], CODECS["lz4"])
    with pytest.raises(OverLimit):
        read(data, WantedParts(True, True, True, 49_999), most_piece_bytes=10_000)


def test_extraction_of_a_large_value_on_the_event_loop_raises() -> None:
    with pytest.raises(OutOfTime):
        read(batch([Rec(NOW, b"k", bytes(70_000))]), given=budget_with_limit(64 * 1024))


def test_extracts_record_headers_only_up_to_the_limit() -> None:
    (found,) = read(batch([Rec(NOW, headers=[(b"", None)] * (MOST_HEADERS + 5)), *()]))
    assert len(found[4]) == MOST_HEADERS


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_contents_of_old_message_sets_equal_the_written_ones(magic: int, codec: str) -> None:
    wanted = [(b"k", b"v" * 500), (None, b"x"), (b"", None)]
    times = [NOW, NOW + 1, NOW + 2]
    plain = [
        message(magic, value, key=key, timestamp=time, offset=i)
        for i, ((key, value), time) in enumerate(zip(wanted, times, strict=True))
    ]
    data = memoryview(b"".join(plain) if codec == "none" else wrapper(magic, plain, CODECS[codec]))
    pieces = None
    if CODECS[codec] != NONE:
        outer = read_message(data, 0, len(data))
        value = data[outer.value_at : outer.value_at + outer.value_size]
        bounds = PayloadLimits(1 << 20, 1 << 20, budget_with_limit())
        pieces = Decompressor(100).open(Codec(outer.codec_id), value, bounds, magic)

    contents = MessageContents(data, pieces, ALL, budget_with_limit())
    found = []
    while contents.read_next():
        found.append((contents.timestamp, contents.key, contents.value, contents.headers))

    assert found == [
        (time if magic else -1, key, value, ()) for (key, value), time in zip(wanted, times, strict=True)
    ]  # fmt: skip
