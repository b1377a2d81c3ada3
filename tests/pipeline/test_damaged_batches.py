"""If a broker sends corrupt batches, the readable batches are read, the corrupt ones are reported, and reading
continues."""

import struct
from collections.abc import Callable

import pytest

from sluicegate.pipeline.kafka import fetching
from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition, TopicTrouble
from sluicegate.pipeline.kafka.fetching import stored_batches
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords, Unreadable, join_adjacent, unreadable
from sluicegate.protocol.fetch_response import FetchedPartition
from sluicegate.protocol.records.record_batch import CONTROL, TRANSACTIONAL
from tests.wire.batches import GZIP, NONE, ZSTD, Rec, batch

NOW = 1_800_000_000_000
OF = TopicPartition("t", 0)


def valid_batch(first: int, count: int = 5) -> bytes:
    return batch([Rec(NOW, value=b"v")] * count, base_offset=first)


def read(monkeypatch: pytest.MonkeyPatch, log: bytes, end: int = 15) -> tuple[list[int], list[Unreadable]]:
    """Return the offsets that are read, and the unreadable ranges. Each response begins with the requested batch."""

    def fetched_partition_at(
        _cluster: object, _of: object, offset: int, size: int, _committed: bool
    ) -> FetchedPartition:
        at = last = 0
        while at < len(log) and (length := int.from_bytes(log[at + 8 : at + 12], "big", signed=True)) > 0:
            delta = int.from_bytes(log[at + 23 : at + 27], "big", signed=True)
            if int.from_bytes(log[at : at + 8], "big") + delta >= offset:
                break
            last, at = at, at + 12 + length
        at = at if at < len(log) else last
        return FetchedPartition(0, end, 0, (), memoryview(log)[at : at + size])

    monkeypatch.setattr(fetching, "_fetch", fetched_partition_at)
    cluster, decoder = KafkaCluster([], None), BatchDecoder()  # receives no requests
    offsets, broken = list[int](), list[Unreadable]()
    for each in stored_batches(cluster, OffsetRange(OF, 0, end), committed=True):
        try:
            offsets += [int(offset) for offset in decoder.decode(each).offset if offset < end]
        except BrokenRecords as error:
            broken.append(unreadable(each, error))
    return offsets, broken


def replace_bytes(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


DAMAGE: dict[str, tuple[Callable[[int], bytes], str]] = {
    "a wrong CRC": (
        lambda first: replace_bytes(valid_batch(first), 70, b"\xff"),
        "the CRC of the batch at offset 5 does not",
    ),
    "a wrong CRC and the flag of markers": (
        lambda first: replace_bytes(valid_batch(first), 22, bytes([CONTROL | TRANSACTIONAL])),
        "the CRC of the batch at offset 5 does not",
    ),
    "a wrong CRC and no records": (
        lambda first: replace_bytes(valid_batch(first), 57, bytes(4)),
        "the CRC of the batch at",
    ),
    "a wrong CRC and a last offset far ahead": (
        lambda first: replace_bytes(valid_batch(first), 23, struct.pack(">i", 2**31 - 1)),
        "the CRC of the batch at offset 5 does not",
    ),
    "an unknown magic": (lambda first: replace_bytes(valid_batch(first), 16, b"\x07"), "has the unknown magic 7"),
    "a negative magic": (lambda first: replace_bytes(valid_batch(first), 16, b"\xff"), "has the unknown magic -1"),
    "an unknown codec": (
        lambda first: batch([Rec(NOW)] * 5, base_offset=first, attributes=6),
        "has the unknown codec 6",
    ),
    "bytes that do not decompress": (
        lambda first: batch([Rec(NOW)] * 5, ZSTD, base_offset=first, compressed=b"no zstd at all"),
        "the batch at offset 5: ",
    ),
    "fewer records than stated": (
        lambda first: batch([Rec(NOW)] * 4, GZIP, base_offset=first, count=5),
        "record 4 of 5 of the batch at offset 5 is broken",
    ),
    "a record that is longer than the batch": (
        lambda first: batch([], NONE, base_offset=first, payload=b"\x7f\0\0\0\0\0\0", count=5),
        "record 0 of 5 of the batch at offset 5 is broken",
    ),
    "a batch shorter than its header": (
        lambda first: first.to_bytes(8, "big") + (20).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(15),
        "is shorter than a batch's header",
    ),
}


@pytest.mark.parametrize(("damaged", "reason"), DAMAGE.values(), ids=DAMAGE.keys())
@pytest.mark.parametrize("place", ["first", "in the middle", "last"])
@pytest.mark.parametrize("chunk", [61, 8 << 20], ids=["small answers", "one answer"])
def test_damaged_batches_are_reported_and_valid_batches_are_read(
    monkeypatch: pytest.MonkeyPatch, damaged: Callable[[int], bytes], reason: str, place: str, chunk: int
) -> None:
    monkeypatch.setattr(fetching, "_FETCH_BYTES", chunk)
    at = {"first": 0, "in the middle": 5, "last": 10}[place]
    log = b"".join(damaged(first) if first == at else valid_batch(first) for first in (0, 5, 10))

    offsets, broken = read(monkeypatch, log)

    assert offsets == [offset for offset in range(15) if offset // 5 != at // 5]
    assert {(each.first_offset, each.batches) for each in broken} == {(at, 1)}
    assert reason.replace("offset 5", f"offset {at}") in broken[0].reason
    if place != "last":
        assert broken[0].last_offset == at + 4


def test_a_batch_that_ends_before_its_first_offset_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a response would begin with such a batch, the broker skips it."""
    log = valid_batch(0) + replace_bytes(valid_batch(5), 23, struct.pack(">i", -9)) + valid_batch(10)

    offsets, broken = read(monkeypatch, log)

    assert offsets == [*range(5), *range(10, 15)]
    assert [(each.first_offset, each.last_offset) for each in broken] == [(5, 9)]


@pytest.mark.parametrize("length", [13, 0, -1, -(2**31)])
def test_reading_ends_if_position_of_next_batch_is_unknown(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    log = valid_batch(0) + replace_bytes(valid_batch(5), 8, struct.pack(">i", length)) + valid_batch(10)

    with pytest.raises(TopicTrouble, match=rf"t-0: the batch at offset 5 is corrupt: its length field is {length}, "):
        read(monkeypatch, log)


def test_a_batch_length_beyond_any_response_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    log = valid_batch(0) + replace_bytes(valid_batch(5), 8, struct.pack(">i", 2**31 - 1)) + valid_batch(10)

    with pytest.raises(TopicTrouble, match=r"t-0: the batch at offset 5 is corrupt: its length field is 2147483647"):
        read(monkeypatch, log)


def test_adjacent_unreadable_batches_are_joined_and_their_number_is_limited() -> None:
    def unreadable_at(offset: int) -> Unreadable:
        return Unreadable(offset, offset + 4, 1, 100, "reason")

    assert join_adjacent([unreadable_at(0), unreadable_at(5), unreadable_at(20)]) == (
        Unreadable(0, 9, 2, 200, "reason"),
        Unreadable(20, 24, 1, 100, "reason"),
    )
    assert (
        str(join_adjacent([unreadable_at(0), unreadable_at(5)])[0])
        == "offsets 0 to 9 (2 batches) cannot be read: reason"
    )
    many = join_adjacent(unreadable_at(10 * i) for i in range(5000))
    assert (len(many), sum(each.batches for each in many), many[-1].last_offset) == (1000, 5000, 49_994)
