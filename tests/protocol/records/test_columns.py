"""Records are read into columns, with null and empty values, any sizes and any times."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.records.columns import Columns, gather, read_columns, read_headers, read_totals
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from tests.wire.batches import Rec, batch, record

INT64 = st.integers(-(2**63), 2**63 - 1)
BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.binary(max_size=9), st.none() | st.binary(max_size=9)), max_size=3)
RECORDS = st.lists(st.builds(Rec, INT64, BYTES, BYTES, HEADERS.map(tuple)), min_size=1, max_size=6)


class ReadColumns:
    """A payload that is read into columns with room for `count` records."""

    def __init__(self, payload: bytes, count: int, base_timestamp: int, base_offset: int = 0) -> None:
        self.payload = memoryview(payload)
        self.rows = [memoryview(array("q", bytes(8 * count))) for _ in range(8)]
        pattern = base_timestamp % 2**64
        self.read = read_columns(self.payload, 0, len(payload), count, base_offset, pattern, Columns(*self.rows), 0)

    def bytes_at(self, at: int, row: int) -> bytes | None:
        place, size = self.rows[at][row], self.rows[at + 1][row]
        return None if size < 0 else bytes(self.payload[place : place + size])


def payload_of(records: list[Rec]) -> bytes:
    return b"".join(record(rec, i, records[0].timestamp) for i, rec in enumerate(records))


@given(RECORDS, st.integers(0, 2**62))
def test_read_columns_equal_the_written_records(records: list[Rec], base_offset: int) -> None:
    found = ReadColumns(payload_of(records), len(records), records[0].timestamp, base_offset)

    assert found.read == len(records)
    for row, rec in enumerate(records):
        assert found.rows[0][row] == base_offset + row
        assert found.rows[1][row] == rec.timestamp
        assert found.bytes_at(2, row) == rec.key
        assert found.bytes_at(4, row) == rec.value
        start, size = found.rows[6][row], found.rows[7][row]
        assert read_headers(found.payload, start, start + size) == list(rec.headers)


@given(RECORDS, st.data())
def test_truncated_payload_yields_the_complete_records_before_the_cut(records: list[Rec], data: st.DataObject) -> None:
    whole = payload_of(records)
    size = data.draw(st.integers(0, len(whole) - 1))

    found = ReadColumns(whole[:size], len(records), records[0].timestamp)

    ends = [len(payload_of(records[: i + 1])) for i in range(len(records))]
    assert found.read == sum(end <= size for end in ends)


@given(st.lists(BYTES, min_size=1, max_size=8), st.integers(0, 5))
def test_byte_columns_concatenate_their_values(pieces: list[bytes | None], filled: int) -> None:
    data, starts, sizes = b"??", array("q"), array("q")
    for piece in pieces:
        starts.append(len(data))
        sizes.append(-1 if piece is None else len(piece))
        data += (piece or b"") + b"?"
    values = bytearray(filled + sum(len(piece or b"") for piece in pieces))
    ends = array("i", bytes(4 * (len(pieces) + 1)))

    end = gather(memoryview(data), starts, sizes, 0, len(pieces), ends, values, filled)

    assert end == len(values)
    assert values[filled:] == b"".join(piece or b"" for piece in pieces)
    found, begin = [], filled
    for behind in ends[1:]:
        found.append(bytes(values[begin:behind]))
        begin = behind
    assert found == [piece or b"" for piece in pieces]


@given(HEADERS, st.data())
def test_read_headers_returns_none_for_truncated_headers(
    headers: list[tuple[bytes, bytes | None]], data: st.DataObject
) -> None:
    rec = Rec(0, b"", b"", tuple(headers))
    found = ReadColumns(payload_of([rec]), 1, 0)
    start, size = found.rows[6][0], found.rows[7][0]
    cut = data.draw(st.integers(0, size - 1))

    assert read_headers(found.payload, start, start + cut) is None


TIMES = st.integers(-(2**63), 2**63 - 1)
BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.binary(max_size=5), BYTES), max_size=3)


@given(st.lists(st.builds(Rec, TIMES, BYTES, BYTES, HEADERS), min_size=1, max_size=30))
def test_read_totals_equals_the_sums_over_the_records(records: list[Rec]) -> None:
    data = memoryview(batch(records))
    header = RecordBatch(data, 0, len(data))

    found = read_totals(data, HEADER_BYTES, len(data), len(records), header.base_timestamp & (2**64 - 1))

    assert found.records == len(records)
    assert found.earliest == min(rec.timestamp for rec in records)
    assert found.latest == max(rec.timestamp for rec in records)
    assert found.null_keys == sum(rec.key is None for rec in records)
    assert found.bytes == sum(len(rec.key or b"") + len(rec.value or b"") for rec in records)


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_read_totals_counts_only_complete_records_of_a_short_payload(cut: int) -> None:
    data = memoryview(batch([Rec(1000 + i) for i in range(5)]))

    found = read_totals(data, HEADER_BYTES, len(data) - cut, 5, 1000)

    assert found.records < 5
