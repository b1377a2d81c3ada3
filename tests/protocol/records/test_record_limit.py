"""The record limit applies to the number of records that a request's batch headers state."""

import pytest

from sluicegate.protocol.errors import TooManyRecords
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.record_limit import check_record_count
from tests.wire.batches import CODECS, Rec, batch, message, wrapper
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
FIVE = [Rec(NOW)] * 5


def lowest_sufficient_limit(*records: bytes, version: int = 9) -> int:
    """Return the lowest limit that accepts these batches."""
    body = bytearray(produce_body(version, [topic_data("t", *enumerate(records))]))
    request = walk_produce_request(body, version, 0, 100)
    for most in range(100):
        try:
            check_record_count(request, most)
        except TooManyRecords:
            continue
        return most
    raise AssertionError("more than a hundred")


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_records_of_compressed_batches_are_counted(codec: int) -> None:
    assert lowest_sufficient_limit(batch(FIVE, codec)) == 5


def test_records_are_counted_over_all_batches_and_partitions() -> None:
    assert lowest_sufficient_limit(batch(FIVE) * 3, batch(FIVE), b"") == 20


def test_an_old_message_or_wrapper_counts_as_one_record() -> None:
    one = message(1, b"", key=None, timestamp=NOW)

    assert (
        lowest_sufficient_limit(one * 4, wrapper(1, [one * 3], CODECS["gzip"], offset=2, timestamp=NOW), version=2) == 5
    )


@pytest.mark.parametrize(
    "damaged",
    [b"", b"\0" * 12, b"\0" * 61, batch(FIVE)[:-1], b"\xff" * 200, b"\0" * 8 + b"\x7f\xff\xff\xff" + b"\0" * 80],
    ids=["nothing", "a length", "zeros", "cut", "ones", "a length without an end"],
)
def test_a_damaged_batch_counts_its_readable_records(damaged: bytes) -> None:
    assert lowest_sufficient_limit(damaged) == 0
    assert lowest_sufficient_limit(batch(FIVE) + damaged) == 5


def test_negative_record_count_does_not_reduce_the_total() -> None:
    lying = bytearray(batch(FIVE))
    lying[57:61] = b"\xff\xff\xff\xff"

    assert lowest_sufficient_limit(batch(FIVE), bytes(lying)) == 5
