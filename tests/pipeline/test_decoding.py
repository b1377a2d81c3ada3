"""Batches of every magic and codec are decoded as a broker stores them."""

import pytest

from sluicegate.pipeline.kafka.fetching import AbortedTransactions, StoredBatch
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords, DecodedBatch
from sluicegate.protocol.records.record_batch import RecordBatch
from tests.wire.batches import CODECS, Rec, batch, message, wrapper

NOW = 1_800_000_000_000
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20


def stored_batch(data: bytes, last_offset: int = 0) -> StoredBatch:
    view = memoryview(data)
    header = RecordBatch(view, 0, len(view)) if data[16] == 2 else None
    return StoredBatch(view, 0, len(view), 0, last_offset, header)


def decode_batch(data: bytes) -> DecodedBatch:
    return BatchDecoder().decode(stored_batch(data))


def decoded_rows(found: DecodedBatch) -> list[tuple[int, int, bytes | None, bytes | None]]:
    def column_value(at: int, row: int) -> bytes | None:
        place, size = int(found.columns[at, row]), int(found.columns[at + 1, row])
        return None if size < 0 else bytes(found.payload[place : place + size])

    count = found.columns.shape[1]
    return [
        (int(found.columns[0, i]), int(found.columns[1, i]), column_value(2, i), column_value(4, i))
        for i in range(count)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_decodes_batches_of_magic_2(codec: str) -> None:
    records = [Rec(NOW), Rec(NOW * 1_000_000, None, b""), Rec(-1, b"", None)]

    found = decode_batch(
        batch(records, CODECS[codec], base_offset=100, producer_id=7, producer_epoch=1, base_sequence=9)
    )

    assert decoded_rows(found) == [(100, NOW, b"k", b"v"), (101, NOW * 1_000_000, None, b""), (102, -1, b"", None)]
    facts = found.facts
    assert (facts.codec, facts.timestamp_type, facts.records) == (codec.replace("xerial", "snappy"), 0, 3)
    assert (facts.producer_id, facts.producer_epoch, facts.base_sequence) == (7, 1, 9)


def test_log_append_time_is_the_time_of_every_record() -> None:
    found = decode_batch(batch([Rec(5), Rec(6)], flags=LOG_APPEND_TIME, max_timestamp=NOW))

    assert [time for _, time, _, _ in decoded_rows(found)] == [NOW, NOW]
    assert found.facts.timestamp_type == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_decodes_an_uncompressed_message_of_magic_0_and_1(magic: int) -> None:
    found = decode_batch(message(magic, None, key=b"old", timestamp=NOW, offset=17))

    assert decoded_rows(found) == [(17, NOW if magic else -1, b"old", None)]
    assert found.facts.timestamp_type == (0 if magic else -1)


@pytest.mark.parametrize("codec", ["gzip", "xerial", "lz4"])
def test_inner_offsets_of_magic_1_count_up_to_the_wrappers(codec: str) -> None:
    inner = [message(1, b"v%d" % i, key=None, timestamp=NOW + i, offset=i) for i in range(3)]

    found = decode_batch(wrapper(1, inner, CODECS[codec], offset=52, timestamp=NOW))

    assert decoded_rows(found) == [(50 + i, NOW + i, None, b"v%d" % i) for i in range(3)]


def test_inner_offsets_of_magic_0_are_absolute() -> None:
    inner = [message(0, b"v", offset=40 + i) for i in range(2)]

    assert [offset for offset, *_ in decoded_rows(decode_batch(wrapper(0, inner, CODECS["gzip"], offset=41)))] == [
        40,
        41,
    ]


@pytest.mark.parametrize(
    ("data", "output"),
    [
        (batch([Rec(NOW)] * 3, count=4, base_offset=8), "record 3 of 4 of the batch at offset 8"),
        (batch([Rec(NOW)], attributes=7, base_offset=8), "offset 8 has the unknown codec 7"),
        (batch([Rec(NOW)], CODECS["zstd"], compressed=b"nothing of the kind"), "payload is damaged"),
    ],
)
def test_broken_batches_are_reported(data: bytes, output: str) -> None:
    with pytest.raises(BrokenRecords, match=output):
        decode_batch(data)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("where", ["alone", "wrapper", "within"])
def test_a_message_of_magic_0_and_1_with_a_wrong_crc_is_reported(magic: int, where: str) -> None:
    plain = message(magic, b"value", timestamp=NOW, offset=3)
    broken = plain[:-1] + b"?"
    valid = wrapper(magic, [plain], CODECS["gzip"], offset=3, timestamp=NOW)
    data = {"alone": broken, "wrapper": valid[:12] + bytes(4) + valid[16:]}.get(where)
    if data is None:
        data = wrapper(magic, [broken], CODECS["gzip"], offset=3, timestamp=NOW)

    with pytest.raises(BrokenRecords, match="the CRC of the message at offset 3 does not match"):
        decode_batch(data)


def test_skips_the_batches_of_aborted_transactions_only() -> None:
    """Producer 1 aborts a transaction at offset 3 and commits the next one; producer 2 is not affected."""
    abort, commit = b"\0\0\0\0", b"\0\0\0\1"

    def batch_of_producer(producer: int, offset: int, marker: bytes | None = None) -> StoredBatch:
        flags = TRANSACTIONAL | (CONTROL if marker else 0)
        return stored_batch(batch([Rec(NOW, marker or b"k")], flags=flags, base_offset=offset, producer_id=producer))

    story = [
        (batch_of_producer(2, 0), False),
        (batch_of_producer(1, 1), True),
        (batch_of_producer(2, 2), False),
        (batch_of_producer(1, 3, abort), False),
        (batch_of_producer(1, 4), False),
        (batch_of_producer(1, 5, commit), False),
    ]
    aborted = AbortedTransactions([(1, 1)])

    for step, left_out in story:
        assert step.header is not None
        assert aborted.is_aborted(step.header, step.data) is left_out
