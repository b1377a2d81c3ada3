"""Rewriting changes only records' times, values and headers, as an independent writer shows."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.protocol.integers import signed_varint
from sluicegate.protocol.records.batch_output import BatchOutput, BatchTooLarge
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import (
    DecompressionBudget,
    OutOfTime,
    OverLimit,
    PayloadLimit,
    PayloadLimits,
)
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from sluicegate.protocol.records.rewriting import (
    Ask,
    CannotRewrite,
    Header,
    Opened,
    RecordChange,
    RecordReader,
    RecordRewriter,
    encoded,
    rewrite_records,
)
from tests.wire.batches import CODECS, NONE, Rec, batch, record

LONGS = st.integers(-(2**63), 2**63 - 1)
BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
RECORDS = st.lists(st.builds(Rec, LONGS, BYTES, BYTES, HEADERS), min_size=1, max_size=10)
MORE: tuple[Header, ...] = ((b"m", b"1" * 100), (b"n", None))
WINDOW = 1 << 20
ANY_SIZE = 1 << 40


def unlimited_budget(most_held: int = ANY_SIZE) -> DecompressionBudget:
    return DecompressionBudget(ANY_SIZE, 0, lambda: None, most_held=most_held)


class Rewritten:
    """A rewritten batch; its payload is rewritten in pieces of at most `piece` bytes."""

    def __init__(
        self,
        data: bytes,
        ask: Ask,
        *,
        piece: int = WINDOW,
        most: int = ANY_SIZE,
        most_plain: int = ANY_SIZE,
        window: int = WINDOW,
        watched: tuple[bytes, ...] = (),
        budget: DecompressionBudget | None = None,
    ) -> None:
        head, budget = RecordBatch(memoryview(data), 0, len(data)), budget or unlimited_budget()
        decompressor = Decompressor(piece)

        def open_payload() -> Opened:
            payload = memoryview(data)[HEADER_BYTES:]
            if head.codec_id == NONE:
                return payload, 0, len(payload), None
            pieces = decompressor.open(Codec(head.codec_id), payload, PayloadLimits(ANY_SIZE, ANY_SIZE, budget))
            first = pieces.more() or b""
            return first, 0, len(first), pieces

        output = BatchOutput(head, most, most_plain, budget)
        count, base = head.record_count, head.base_timestamp
        writer = rewrite_records(
            lambda: RecordReader(open_payload(), count, base, window, budget, watched),
            ask,
            lambda: RecordRewriter(output, base),
        )
        self.records: bytes | None = None
        if writer is not None:
            self.records = output.finished(writer.base_timestamp, writer.latest)


def change_nothing(_record: RecordReader) -> None:
    """Change nothing."""


def change_record(index: int, change: RecordChange) -> Ask:
    return lambda record: change if record.index == index else None


def plain_payload(data: bytes) -> bytes:
    codec = Codec(RecordBatch(memoryview(data), 0, len(data)).codec_id)
    found = Decompressor().decompress(codec, memoryview(data)[HEADER_BYTES:], ANY_SIZE)
    assert found.failure is None and found.oddity is None
    return bytes(found.data)


def equals_written_batch(data: bytes, expected: bytes) -> bool:
    """Return whether two batches have the same header, apart from size and CRC, and the same plain payload."""
    return (
        data[:8] == expected[:8]
        and data[12:17] == expected[12:17]
        and data[21:HEADER_BYTES] == expected[21:HEADER_BYTES]
        and plain_payload(data) == plain_payload(expected)
    )


@given(records=RECORDS, times=st.lists(LONGS, min_size=10, max_size=10), producer=LONGS)
def test_batch_with_rewritten_timestamps_equals_one_written_with_them(
    records: list[Rec], times: list[int], producer: int
) -> None:
    state = {"producer_id": producer, "producer_epoch": 7, "base_sequence": 11, "leader_epoch": 5}
    expected = [Rec(time, r.key, r.value, r.headers) for time, r in zip(times, records, strict=False)]

    found = Rewritten(batch(records, **state), lambda record: RecordChange(time=times[record.index]))

    assert found.records == batch(expected, **state)


CHANGES: list[tuple[str, RecordChange, Callable[[Rec], Rec]]] = [
    ("an empty value", RecordChange(value=b""), lambda rec: replace(rec, value=b"")),
    ("a long value", RecordChange(value=b"n" * 300), lambda rec: replace(rec, value=b"n" * 300)),
    (
        "more headers",
        RecordChange(more=encoded(MORE), more_count=2),
        lambda rec: replace(rec, headers=[*rec.headers, *MORE]),
    ),
    ("other headers", RecordChange(headers=signed_varint(2) + encoded(MORE)), lambda rec: replace(rec, headers=MORE)),
    ("no headers", RecordChange(headers=signed_varint(0)), lambda rec: replace(rec, headers=())),
    (
        "value and headers",
        RecordChange(value=b"x", more=encoded(MORE), more_count=2),
        lambda rec: replace(rec, value=b"x", headers=[*rec.headers, *MORE]),
    ),
]


@pytest.mark.parametrize("codec", list(CODECS))
@pytest.mark.parametrize("piece", [1, 7, WINDOW])
@settings(max_examples=15)
@given(records=RECORDS, index=st.integers(0, 9), which=st.sampled_from(CHANGES))
def test_batch_with_a_rewritten_record_equals_one_written_with_it(
    piece: int, codec: str, records: list[Rec], index: int, which: tuple[str, RecordChange, Callable[[Rec], Rec]]
) -> None:
    index %= len(records)
    _, change, expect = which
    base = records[0].timestamp
    sent = batch(records, CODECS[codec], max_timestamp=base)
    expected = [expect(each) if i == index else each for i, each in enumerate(records)]

    found = Rewritten(sent, change_record(index, change), piece=piece)

    assert found.records is not None
    plain = b"".join(record(each, i, base) for i, each in enumerate(expected))
    assert plain_payload(found.records) == plain


@pytest.mark.parametrize("codec", list(CODECS))
def test_rewritten_large_batch_decompresses_as_one_payload(codec: str) -> None:
    records = [Rec(1_000 + i, b"k%d" % i, b"%d" % (i * i) * 50) for i in range(3_000)]
    sent = batch(records, CODECS[codec])
    expected = [replace(each, value=b"changed") if i == 2_000 else each for i, each in enumerate(records)]

    found = Rewritten(sent, change_record(2_000, RecordChange(value=b"changed")))

    assert found.records is not None
    assert plain_payload(found.records) == plain_payload(batch(expected))


@given(records=RECORDS)
def test_rewriting_calls_back_once_per_record_with_its_contents(records: list[Rec]) -> None:
    seen: list[object] = []

    def ask(read: RecordReader) -> RecordChange | None:
        seen.append((read.timestamp, read.key_size, read.value(), list(read.headers())))
        assert list(read.last_headers()) == list(read.headers())[-2:]
        return RecordChange(value=b"") if read.index == len(records) // 2 else None

    Rewritten(batch(records), ask)

    assert seen == [(r.timestamp, -1 if r.key is None else len(r.key), r.value, list(r.headers)) for r in records]


@given(records=RECORDS)
def test_rewriting_returns_none_if_no_record_changes(records: list[Rec]) -> None:
    assert Rewritten(batch(records), change_nothing).records is None


def test_rewriting_renames_only_the_watched_headers() -> None:
    headers = [(b"w1", b"a"), (b"x", None), (b"w", b""), (b"w2", None), (b"w3", b"last")]
    found: list[bytes] = []

    def ask(read: RecordReader) -> RecordChange:
        assert read.is_watched is (read.index == 0)
        found.append(read.renamed(lambda name: b"<" + name + b">", 1) if read.is_watched else b"")
        return RecordChange(more=b"")

    Rewritten(
        batch([Rec(1, headers=headers), Rec(1, headers=[(b"v", b"w1"), (b"", b"")])]), ask, watched=(b"w1", b"w2")
    )

    assert found == [encoded(((b"<w1>", b"a"), (b"x", None), (b"w", b""), (b"<w2>", None))), b""]


ONE = record(Rec(5), 0, 5)
NOT_UNDERSTOOD = {
    "a length that is too small": bytes([ONE[0] - 2]) + ONE[1:],
    "a length that is too large": bytes([ONE[0] + 2]) + ONE[1:] + b"\0",
    "a length that is negative": b"\x01" + ONE[1:],
    "a record that ends within": ONE[:-1],
    "bytes after the last": ONE + b"\0",
    "nothing": b"",
    "a negative count of headers": ONE[:-1] + b"\x01",
    "a header beyond the end of its record": bytes([ONE[0] + 2]) + ONE[1:-1] + b"\x02\x10",
}


@pytest.mark.parametrize("codec", list(CODECS))
@pytest.mark.parametrize("piece", [1, WINDOW])
@pytest.mark.parametrize("ask", [change_nothing, change_record(0, RecordChange(value=b""))])
@pytest.mark.parametrize("payload", NOT_UNDERSTOOD.values(), ids=list(NOT_UNDERSTOOD))
def test_rejects_rewriting_of_payload_with_surplus_or_missing_bytes(
    payload: bytes, ask: Ask, piece: int, codec: str
) -> None:
    with pytest.raises(CannotRewrite, match="not exactly its records"):
        Rewritten(batch([Rec(5)], CODECS[codec], payload=payload), ask, piece=piece)


@pytest.mark.parametrize("codec", list(CODECS))
def test_rewriting_stops_when_the_batch_exceeds_its_size_limit(codec: str) -> None:
    sent = batch([Rec(5, value=b"%d" % i * 100) for i in range(2_000)], CODECS[codec])
    size = len(Rewritten(sent, change_record(0, RecordChange(value=b"v"))).records or b"")
    asked: list[int] = []

    def ask(read: RecordReader) -> RecordChange:
        asked.append(read.index)
        return RecordChange(value=b"v" * 10_000 + b"%d" % read.index)

    assert Rewritten(sent, change_record(0, RecordChange(value=b"v")), most=size).records is not None
    with pytest.raises(BatchTooLarge):
        Rewritten(sent, change_record(0, RecordChange(value=b"v")), most=size - 1)
    with pytest.raises(BatchTooLarge):
        Rewritten(sent, ask, most_plain=1_000_000)
    assert len(asked) < 200


@pytest.mark.parametrize("codec", list(CODECS))
def test_rewriting_rejects_record_larger_than_the_window(codec: str) -> None:
    sent = batch([Rec(5, value=bytes(300))], CODECS[codec])
    change = RecordChange(value=b"v")

    if CODECS[codec] == NONE:
        assert Rewritten(sent, change_record(0, change), window=10).records is not None  # written unchanged
        return
    assert Rewritten(sent, change_record(0, change), piece=100, window=310).records is not None
    with pytest.raises(OverLimit) as error:
        Rewritten(sent, change_record(0, change), piece=100, window=300)
    assert error.value.bound is PayloadLimit.WINDOW


def test_a_large_record_is_not_rewritten_on_the_event_loop() -> None:
    with pytest.raises(OutOfTime):
        Rewritten(batch([Rec(5, value=bytes(2_000))]), change_nothing, budget=unlimited_budget(most_held=1_000))
