"""The stand-in for a rejected batch contains no records, but the fields that brokers check before records."""

import pytest

from sluicegate.protocol.records.record_batch import RecordBatch, has_valid_crc, next_batch_end
from sluicegate.protocol.records.stand_in import breaking_piece, stand_in
from tests.wire.batches import GZIP, Rec, batch, message

TRANSACTIONAL, LOG_APPEND_TIME = 0x10, 0x08
REJECTED = batch(
    [Rec(1)], GZIP, flags=TRANSACTIONAL | LOG_APPEND_TIME, producer_id=7, producer_epoch=3, base_sequence=11
)


def test_stand_in_batch_has_no_record_and_an_invalid_crc() -> None:
    made = memoryview(stand_in(memoryview(REJECTED)))

    assert next_batch_end(made, 0) == len(made) == 61
    header = RecordBatch(made, 0, len(made))
    assert not has_valid_crc(made, header)
    assert (header.record_count, header.last_offset_delta) == (0, -1)


def test_stand_in_batch_keeps_attributes_and_producer_state() -> None:
    header = RecordBatch(memoryview(stand_in(memoryview(REJECTED))), 0, 61)

    assert header.attributes == GZIP | TRANSACTIONAL
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)


@pytest.mark.parametrize(
    "records", [b"", b"short", REJECTED[:30], message(1, b"v")], ids=["empty", "short", "cut", "old"]
)
def test_stand_in_is_built_for_malformed_batches(records: bytes) -> None:
    assert len(stand_in(memoryview(records))) == 61


def test_breaking_piece_returns_the_first_malformed_batch() -> None:
    good = batch([Rec(1)])
    short = batch([Rec(1)], length=30)[:42]

    assert breaking_piece(memoryview(good * 2), _go_on) is None
    assert breaking_piece(memoryview(short), _go_on) == short
    assert breaking_piece(memoryview(good + short), _go_on) == short
    assert breaking_piece(memoryview(good + bytes(40)), _go_on) == bytes(17)


def test_breaking_piece_yields_regularly_over_many_batches() -> None:
    pauses: list[None] = []

    assert breaking_piece(memoryview(batch([Rec(1)]) * 3000), lambda: pauses.append(None)) is None

    assert len(pauses) > 10


def _go_on() -> None:
    """Do nothing."""
