"""Single records get other values and headers; every other byte of the payload stays."""

from dataclasses import replace

import pytest

from sluicegate.protocol.records.rewriting import CannotRewrite, Change, RecordTable, encoded_headers
from tests.wire.batches import Rec, batch

HEADERS = [(b"a", b"1"), (b"a", None), (b"\xff\0", b"")]
RECORDS = [
    Rec(1_000, b"k0", b"v0", HEADERS),
    Rec(999, None, None),
    Rec(-1, b"", b"", [(b"", b"")]),
    Rec(2**62, b"k", b"x" * 200),
]


def payload_of(records: list[Rec]) -> bytes:
    return batch(records)[61:]


def table(records: list[Rec]) -> RecordTable:
    return RecordTable(memoryview(payload_of(records)), len(records), records[0].timestamp)


def test_without_changes_the_payload_is_the_same() -> None:
    assert table(RECORDS).rewritten({}, 1 << 20) == payload_of(RECORDS)


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize("value", [b"", b"new", b"n" * 300])
def test_one_value_changes_as_if_the_record_had_been_written_with_it(index: int, value: bytes) -> None:
    expected = [replace(each, value=value) if i == index else each for i, each in enumerate(RECORDS)]

    assert table(RECORDS).rewritten({index: Change(value=value)}, 1 << 20) == payload_of(expected)


@pytest.mark.parametrize("index", range(4))
def test_headers_are_added_after_the_records_own_ones(index: int) -> None:
    read = table(RECORDS)
    more = [(b"m", b"1" * 100), (b"n", None)]
    own = RECORDS[index]
    expected = [replace(each, headers=[*own.headers, *more]) if i == index else each for i, each in enumerate(RECORDS)]

    found = read.rewritten({index: Change(headers=read.with_more_headers(index, more))}, 1 << 20)

    assert found == payload_of(expected)
    assert read.headers(index) == list(own.headers)
    assert read.rewritten({index: Change(headers=encoded_headers([*own.headers, *more]))}, 1 << 20) == found


@pytest.mark.parametrize("data", [payload_of(RECORDS) + b"\0", payload_of(RECORDS)[:-1], b""])
def test_a_payload_that_is_not_exactly_its_records_is_not_rewritten(data: bytes) -> None:
    with pytest.raises(CannotRewrite, match="not exactly its records"):
        RecordTable(memoryview(data), len(RECORDS), 1_000)


def test_a_payload_does_not_grow_beyond_its_bound() -> None:
    read, size = table(RECORDS), len(payload_of(RECORDS))

    assert len(read.rewritten({0: Change(value=b"v012")}, size + 2)) == size + 2
    with pytest.raises(CannotRewrite, match=f"exceed {size + 1} bytes"):
        read.rewritten({0: Change(value=b"v012")}, size + 1)
