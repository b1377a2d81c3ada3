"""Generates random logs like those of brokers (compacted, transactional, with messages of magic 0 and 1), and a
broker's responses from them. `tests.pipeline.test_chunks` also uses responses of real brokers.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from sluicegate.protocol.fetch_response import FetchedPartition
from sluicegate.protocol.records.record_batch import CONTROL, TRANSACTIONAL
from tests.wire.batches import GZIP, LZ4, NONE, ZSTD, Rec, batch, message, record, wrapper

NOW = 1_764_000_000_000
TIMES = (
    st.integers(NOW - 600_000, NOW)
    | st.integers(NOW - 10**10, NOW + 10**10)
    | st.sampled_from([0, -1, NOW // 1000, NOW * 1000, NOW * 10**6, 2**63 - 1, -(2**63)])
)
RECORDS = st.builds(Rec, TIMES, st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=9))
_SOME = st.lists(RECORDS, min_size=1, max_size=30)
_CODECS = st.sampled_from([NONE, LZ4, GZIP, ZSTD])
_PRODUCERS = st.sampled_from([-1, 7, 8, 9])


@dataclass(frozen=True)
class WrittenBatch:
    """One entry of a log. `kept`: which records compaction has left (empty: all). `magic` 0 and 1 are messages, in a
    wrapper if there are several. `ended`: the number of entries after which the producer's transaction ends.
    """

    records: list[Rec]
    codec: int
    producer: int
    magic: int = 2
    kept: frozenset[int] = frozenset()
    gap: int = 0
    ended: int | None = None
    is_aborted: bool = False


WRITTEN = st.builds(WrittenBatch, _SOME, _CODECS, _PRODUCERS) | st.builds(
    WrittenBatch,
    _SOME,
    _CODECS,
    _PRODUCERS,
    st.sampled_from([0, 1, 2, 2]),
    st.frozensets(st.integers(0, 29), max_size=10),
    st.integers(0, 40),
    st.none() | st.integers(0, 3),
    st.booleans(),
)


@dataclass
class ScriptedLog:
    """A partition from offset 0. `batches`: first offset, last offset and bytes of each batch. `aborted`: first offset,
    last offset and producer of each aborted transaction.
    """

    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.batches[-1][1] + 1

    def fetched(self, offset: int, batches: int) -> FetchedPartition:
        """Return this many batches from the one with the offset or the next one, and the head of the following
        batch."""
        behind = [each for each in self.batches if each[1] >= offset]
        data = b"".join(each[2] for each in behind[:batches]) + b"".join(each[2][:40] for each in behind[batches:][:1])
        upto = behind[: batches + 1][-1][1] if behind else offset
        aborted = tuple((producer, first) for first, last, producer in self.aborted if last >= offset and first <= upto)
        return FetchedPartition(0, self.end, 0, aborted, memoryview(data))


def log_of(entries: Sequence[WrittenBatch]) -> ScriptedLog:
    """Return a log of these entries, with offsets as a broker would assign them."""
    found, offset = ScriptedLog(), 0
    open_ones: list[tuple[int, int, int, bool]] = []  # remaining entries, first offset, producer, whether aborted
    for number, entry in enumerate(entries):
        offset += entry.gap
        producer = entry.producer
        if entry.magic == 2 and entry.ended is not None:
            producer = 1000 + number  # one transaction per producer
            open_ones.append((entry.ended, offset, producer, entry.is_aborted))
        count = len(entry.records)
        found.batches.append((offset, offset + count - 1, _batch_of(entry, offset, producer)))
        offset += count
        left = [(ended - 1, *rest) for ended, *rest in open_ones]
        open_ones = [each for each in left if each[0] >= 0]
        for _, first, its, is_aborted in (each for each in left if each[0] < 0):
            found.batches.append((offset, offset, _marker(its, offset, is_aborted=is_aborted)))
            if is_aborted:
                found.aborted.append((first, offset, its))
            offset += 1
    for _, first, its, _ in open_ones:
        found.batches.append((offset, offset, _marker(its, offset, is_aborted=True)))
        found.aborted.append((first, offset, its))
        offset += 1
    return found


def _batch_of(entry: WrittenBatch, offset: int, producer: int) -> bytes:
    if entry.magic < 2:
        return _messages(entry, offset)
    flags = TRANSACTIONAL if producer >= 1000 else 0
    kept = [i for i in range(len(entry.records)) if i in entry.kept] or list(range(len(entry.records)))
    base = entry.records[0].timestamp
    return batch(
        entry.records,
        entry.codec,
        payload=b"".join(record(entry.records[i], i, base) for i in kept),
        base_offset=offset,
        count=len(kept),
        last_offset_delta=len(entry.records) - 1,
        producer_id=producer,
        flags=flags,
    )


def _messages(entry: WrittenBatch, offset: int) -> bytes:
    magic, first = entry.magic, entry.records[0]
    if len(entry.records) == 1:
        return message(magic, first.value, key=first.key, timestamp=first.timestamp, offset=offset)
    inner = [
        message(magic, r.value, key=r.key, timestamp=r.timestamp, offset=i if magic else offset + i)
        for i, r in enumerate(entry.records)
    ]
    last = offset + len(entry.records) - 1
    return wrapper(magic, inner, GZIP, offset=last, timestamp=first.timestamp)


def _marker(producer: int, offset: int, *, is_aborted: bool) -> bytes:
    key = struct.pack(">hh", 0, 0 if is_aborted else 1)
    marker = [Rec(NOW, key, struct.pack(">hi", 0, 0))]
    return batch(marker, base_offset=offset, producer_id=producer, flags=TRANSACTIONAL | CONTROL)
