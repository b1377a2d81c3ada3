"""Extracted records equal those of an independent writer, with any codec and any piece boundaries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Abandoned, DecompressionBudget, PayloadLimits
from sluicegate.protocol.records.contents import RECORD_BYTES, TakenRecords, TooMuch, WhyTaken, take_records
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from tests.wire.batches import CODECS, NONE, Rec, batch

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.builds(Rec, LONGS, TEXTS, TEXTS, st.lists(st.tuples(st.binary(max_size=5), TEXTS), max_size=3)),
    min_size=1,
    max_size=10,
)
UNBOUNDED = 1 << 40


def extract(
    data: bytes, wanted: WhyTaken, most: int = UNBOUNDED, give_way: object = None, piece: int = 7
) -> TakenRecords | None:
    head = RecordBatch(memoryview(data), 0, len(data))
    budget = DecompressionBudget(UNBOUNDED, 0, give_way or (lambda: None))
    count, base = head.record_count, head.base_timestamp
    if head.codec_id == NONE:
        view = memoryview(data)
        return take_records(view, HEADER_BYTES, len(data), count, base, None, budget, wanted, most)
    payload = memoryview(data)[HEADER_BYTES:]
    pieces = Decompressor(piece).open(Codec(head.codec_id), payload, PayloadLimits(UNBOUNDED, UNBOUNDED, budget))
    first = pieces.more() or b""
    return take_records(first, 0, len(first), count, base, pieces, budget, wanted, most)


@pytest.mark.parametrize("codec", CODECS)
@given(records=RECORDS, places=st.sets(st.integers(0, 9)))
def test_extracts_the_selected_records_unchanged(codec: str, records: list[Rec], places: set[int]) -> None:
    found = extract(batch(records, CODECS[codec]), lambda index, _time, _key: "why" if index in places else None)

    assert found is not None
    assert [(r.index, r.timestamp, r.why, r.key, r.value, r.headers) for r in found.records] == [
        (i, r.timestamp, "why", r.key, r.value, list(r.headers)) for i, r in enumerate(records) if i in places
    ]


@given(records=RECORDS)
def test_extraction_filter_gets_timestamp_and_key_size_of_each_record(records: list[Rec]) -> None:
    seen: list[tuple[int, int, int]] = []

    extract(batch(records), lambda *about: seen.append(about))

    assert seen == [(i, r.timestamp, -1 if r.key is None else len(r.key)) for i, r in enumerate(records)]


def test_extraction_stops_at_its_memory_limit() -> None:
    data = batch([Rec(1, b"k", bytes(1000), [(b"h", bytes(500))])] * 3)

    found = extract(data, lambda *_: "why")

    assert found is not None
    assert found.size > 3 * (1500 + RECORD_BYTES)
    with pytest.raises(TooMuch):
        extract(data, lambda *_: "why", most=found.size - 1)
    assert extract(data, lambda *_: "why", most=found.size) is not None
    assert extract(data, lambda *_: None, most=0) is not None


def test_extraction_stops_if_the_yield_callback_raises() -> None:
    def raise_abandoned() -> None:
        raise Abandoned

    with pytest.raises(Abandoned):
        extract(batch([Rec(1, b"k", bytes(1000))] * 1000), lambda *_: None, give_way=raise_abandoned)


@pytest.mark.parametrize("codec", CODECS)
@given(records=RECORDS, at=st.integers(0, 10_000))
def test_extraction_from_truncated_records_returns_none(codec: str, records: list[Rec], at: int) -> None:
    """Extraction never raises an error and never reads beyond the end."""
    whole = b"".join(batch(records)[HEADER_BYTES:] for _ in range(1))
    data = batch(records, CODECS[codec], payload=whole[: at % len(whole)])

    assert extract(data, lambda *_: "why") is None
