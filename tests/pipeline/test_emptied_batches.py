"""Batches without records, as log cleaners leave them, are skipped at every position in a broker's response."""

import pytest

from sluicegate.pipeline.kafka import fetching
from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import stored_batches
from sluicegate.protocol.fetch_response import FetchedPartition
from sluicegate.protocol.records.record_batch import CONTROL, TRANSACTIONAL
from tests.wire.batches import GZIP, Rec, batch

NOW = 1_800_000_000_000
OF = TopicPartition("t", 0)
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"
EMPTY_MARKER_OF_A_BROKER = bytes.fromhex(
    "0000000000000001000000310000000002ce92af69003000000000ffffffffffffffff000001a21873b0b7"
    "00000000000000070001ffffffff00000000"
)
"""Written by Kafka 4.3.1's log cleaner: offset 1, producer 7."""


def data_batch(offset: int, producer: int = -1, flags: int = 0) -> bytes:
    return batch([Rec(NOW, value=b"%d" % offset)], flags=flags, base_offset=offset, producer_id=producer)


def marker_batch(offset: int, producer: int, kind: bytes) -> bytes:
    flags = TRANSACTIONAL | CONTROL
    return batch([Rec(NOW, kind)], flags=flags, base_offset=offset, producer_id=producer)


def emptied_batch(offset: int, producer: int = -1, flags: int = 0, last_offset_delta: int = 0) -> bytes:
    return batch([], flags=flags, base_offset=offset, producer_id=producer, last_offset_delta=last_offset_delta)


def offsets_read(
    monkeypatch: pytest.MonkeyPatch, responses: list[bytes], end: int, aborted: tuple[tuple[int, int], ...]
) -> list[int]:
    """Return the first offsets of the batches that are read up to `end` from these responses."""
    left = [FetchedPartition(0, end, 0, aborted, memoryview(response)) for response in responses]
    monkeypatch.setattr(fetching, "_fetch", lambda *_: left.pop(0))
    cluster = KafkaCluster([], None)  # receives no requests
    return [each.first_offset for each in stored_batches(cluster, OffsetRange(OF, 0, end), committed=True)]


STORIES: dict[str, tuple[list[bytes], tuple[tuple[int, int], ...], list[int]]] = {
    "an empty marker last": ([data_batch(0), EMPTY_MARKER_OF_A_BROKER], (), [0]),
    "an empty marker first": ([emptied_batch(0, 7, TRANSACTIONAL | CONTROL), data_batch(1)], (), [1]),
    "an empty marker in the middle": ([data_batch(0), EMPTY_MARKER_OF_A_BROKER, data_batch(2)], (), [0, 2]),
    "nothing but an empty marker": ([emptied_batch(0, 7, TRANSACTIONAL | CONTROL)], (), []),
    "empty data first, in the middle and last": (
        [emptied_batch(0, 3), data_batch(1), emptied_batch(2, 4), data_batch(3), emptied_batch(4, 5)],
        (),
        [1, 3],
    ),
    "empty data of many records": ([emptied_batch(0, 3, last_offset_delta=9), data_batch(10)], (), [10]),
    "empty data within a committed transaction": (
        [
            data_batch(0, 7, TRANSACTIONAL),
            emptied_batch(1, 7, TRANSACTIONAL),
            data_batch(2, 7, TRANSACTIONAL),
            marker_batch(3, 7, COMMIT),
        ],
        (),
        [0, 2],
    ),
    "empty data within an aborted transaction": (
        [
            data_batch(0, 7, TRANSACTIONAL),
            emptied_batch(1, 7, TRANSACTIONAL),
            data_batch(2, 7, TRANSACTIONAL),
            marker_batch(3, 7, ABORT),
            data_batch(4),
        ],
        ((7, 0),),
        [4],
    ),
    "an empty marker ends no aborted transaction": (
        [
            *(
                data_batch(0, 7, TRANSACTIONAL),
                emptied_batch(1, 7, TRANSACTIONAL | CONTROL),
                data_batch(2, 7, TRANSACTIONAL),
            ),
            *(marker_batch(3, 7, ABORT), data_batch(4, 7, TRANSACTIONAL), marker_batch(5, 7, COMMIT)),
        ],
        ((7, 0),),
        [4],
    ),
    "the batch after an empty marker is not a marker": (  # a batch at offset 256 begins like the marker of an abort
        [
            *(data_batch(254, 7, TRANSACTIONAL), emptied_batch(255, 7, TRANSACTIONAL | CONTROL)),
            *(data_batch(256, 7, TRANSACTIONAL), marker_batch(257, 7, ABORT), data_batch(258)),
        ],
        ((7, 254),),
        [258],
    ),
}


@pytest.mark.parametrize(("log", "aborted", "read"), STORIES.values(), ids=STORIES.keys())
def test_batches_without_records_are_skipped(
    monkeypatch: pytest.MonkeyPatch, log: list[bytes], aborted: tuple[tuple[int, int], ...], read: list[int]
) -> None:
    end = _end(log[-1])

    assert offsets_read(monkeypatch, [b"".join(log)], end, aborted) == read


@pytest.mark.parametrize(("log", "aborted", "read"), STORIES.values(), ids=STORIES.keys())
def test_batches_without_records_are_skipped_across_responses(
    monkeypatch: pytest.MonkeyPatch, log: list[bytes], aborted: tuple[tuple[int, int], ...], read: list[int]
) -> None:
    """A broker lists in each response the aborted transactions that overlap it (KIP-98). This one lists all of them,
    which is allowed."""
    end = _end(log[-1])

    responses = [b"".join(log[:2]), *([b"".join(log[2:])] if log[2:] else [])]

    if not aborted:
        assert offsets_read(monkeypatch, responses, end, ()) == read


def test_a_batch_that_only_claims_to_be_empty_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CRC is wrong, so the count of records may be damaged and the batch may have records."""
    damaged = batch([Rec(NOW)] * 3, GZIP, count=0, crc=1, last_offset_delta=2)

    assert offsets_read(monkeypatch, [damaged], 3, ()) == [0]


def _end(last: bytes) -> int:
    return int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") + 1
