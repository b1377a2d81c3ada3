"""What an empty answer of a broker means, short of the end of what was asked for.

It may be the end of a compacted log, whose rest has been removed. It may be a leader that does not know its high
watermark or last stable offset yet. And it may be a read from remote storage (KIP-405) that outlasts the broker's
`remote.fetch.max.wait.ms`: then it answers with no error, the high watermark, and no records, and the same request may
have its records a moment later. What the leader holds itself it never leaves out.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from sluicegate.pipeline.kafka import read_offsets
from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange, Retry, TopicPartition, TopicTrouble, check_code
from sluicegate.pipeline.kafka.connection import BrokerConnection
from sluicegate.protocol.fetch_response import FetchedPartition
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST
from sluicegate.protocol.records.record_batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    HEADER_UP_TO_MAGIC_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_2,
    MIN_BATCH_LENGTH,
    TRANSACTIONAL,
    RecordBatch,
    has_valid_crc,
    magic_at,
)

_PATIENCE_SECONDS = 60.0


class RemoteSilence(TopicTrouble):
    """Records in remote storage do not come; the text says which, and what to do."""


class DataLoss(Exception):
    """Offsets that were asked for are gone: deleted at the log's start, or cut off at its end. `found` is the next that
    is there, or the end of what was asked for.
    """

    def __init__(self, wanted: OffsetRange, offset: int, found: int) -> None:
        super().__init__(f"{wanted.of}: offsets {offset} to {found - 1} are gone")
        self.first, self.found = offset, found


class EmptyResponses:
    """Those in a row at one offset; each is told of by `is_the_end`, progress by `end`."""

    def __init__(self, cluster: Cluster, wanted: OffsetRange, committed: bool) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._committed = committed
        self._since: float | None = None
        self._held_here = False

    def end(self) -> None:
        """Something came."""
        self._since, self._held_here = None, False

    def is_the_end(self, offset: int, high_watermark: int) -> bool:
        """Whether nothing is left from `offset` to the end of what is wanted; if not, ask again.

        Raises DataLoss for a log that was cut off, and RemoteSilence, when patience ends.
        """
        begun = self._since is None
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        there = high_watermark >= self._wanted.end and self._readable_to() >= self._wanted.end
        if there and self._held_here:
            return True  # asked of the same leader once more, since it was seen to hold this offset itself
        local = self._cluster.local_start(self._wanted.of)
        self._held_here = there and local <= offset
        if begun or now - self._since < _PATIENCE_SECONDS:
            return False
        if not there:
            raise DataLoss(self._wanted, offset, self._wanted.end)
        raise RemoteSilence(
            f"{self._wanted.of}: for {_PATIENCE_SECONDS:.0f} s the broker has answered nothing at offset {offset}, and "
            f"the log goes on; what lies below {local} is in its remote storage, whose reads seem to outlast the "
            "broker's remote.fetch.max.wait.ms: raise that, or see to the remote storage, and start again"
        )

    def _readable_to(self) -> int:
        return self._cluster.offsets([self._wanted.of], LATEST, self._committed)[self._wanted.of]


_TYPE_AT = 2  # in a control record's key: version int16, type int16
_INT16 = Struct(">h")
_ABORT = 0


class AbortedTransactions:
    """Of one answer: `aborted` has producer id and first offset of each, and control records say where each ends.

    A control batch without a record ends nothing. The log cleaner empties a marker only after all records of its
    transaction are gone, and drops that transaction from what brokers report (CompletedFetch.containsAbortMarker,
    CleanedTransactionMetadata.onControlBatchRead).
    """

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._coming = sorted(((offset, producer_id) for producer_id, offset in aborted), reverse=True)
        self._open: set[int] = set()

    def leaves_out(self, batch: RecordBatch, data: memoryview) -> bool:
        """Whether the batch is part of an aborted transaction; to be asked of each batch in its order."""
        last_offset = batch.base_offset + batch.last_offset_delta
        while self._coming and self._coming[-1][0] <= last_offset:
            self._open.add(self._coming.pop()[1])
        if batch.attributes & CONTROL:
            if batch.record_count > 0 and _control_type(batch, data) == _ABORT:
                self._open.discard(batch.producer_id)
            return False
        return bool(batch.attributes & TRANSACTIONAL) and batch.producer_id in self._open


def _control_type(batch: RecordBatch, data: memoryview) -> int:
    """What the one record of a control batch says: 0 abort, 1 commit. Control batches are never compressed."""
    position = _behind_varint(data, batch.start + HEADER_BYTES) + 1  # length, attributes
    for _field in ("timestamp delta", "offset delta", "key size"):
        position = _behind_varint(data, position)
    found: int = _INT16.unpack_from(data, position + _TYPE_AT)[0]
    return found


def _behind_varint(data: memoryview, position: int) -> int:
    while data[position] & 0x80:
        position += 1
    return position + 1


_WAIT_MS = 500
_CHUNK_BYTES = 8 << 20
_LARGEST_CHUNK_BYTES = 1 << 30
_OFFSET_OUT_OF_RANGE = 1
_ATTRIBUTES_AT = 17  # of a message of magic 0 or 1: behind its offset, size, CRC and magic
_LENGTH_AT, _MAGIC_AT = 8, 16
_INT32, _INT64 = Struct(">i"), Struct(">q")


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch, or a message of magic 0 or 1, at data[start:end]; `header` is None for such a message.

    `first_offset` is that of the batch as it was written, `last_offset` that of its last record. A message that is
    compressed holds others and does not say which: then `first_offset` is the least that it can be. Some of its records
    may lie before the range that was asked for, or behind it. `flaw`: why nothing of it can be read, where that shows
    before decoding.
    """

    data: memoryview
    start: int
    end: int
    first_offset: int
    last_offset: int
    header: RecordBatch | None
    flaw: str | None = None


def stored_batches(cluster: Cluster, wanted: OffsetRange, committed: bool) -> Iterator[StoredBatch]:
    """Every batch with records in [start, end), control batches left out, and with `committed` aborted ones too.

    A batch that the log cleaner has emptied, and kept for its producer's sequence or as the end of what it cleaned, has
    no records. Damaged batches are among the others: only decoding tells. Raises DataLoss, TopicTrouble and
    BrokerUnreachable. What compaction has removed is passed over.
    """
    offset, size, empty = wanted.start, _CHUNK_BYTES, EmptyResponses(cluster, wanted, committed)
    try:
        while offset < wanted.end:
            answer = _fetch(cluster, wanted.of, offset, size, committed)
            if answer.error_code == _OFFSET_OUT_OF_RANGE:
                begins = cluster.offsets([wanted.of], EARLIEST, committed)[wanted.of]
                raise DataLoss(wanted, offset, min(begins, wanted.end) if begins > offset else wanted.end)
            records = answer.records
            aborted = AbortedTransactions(answer.aborted if committed else ())
            behind, is_any_whole = offset, False
            for batch in _batches(wanted.of, records, offset, answer.high_watermark):
                behind, is_any_whole = max(behind, batch.last_offset + 1), True
                if batch.last_offset < offset or _is_left_out(batch, aborted):
                    continue
                if batch.first_offset >= wanted.end:
                    return
                yield batch
            if len(records) > 0:
                empty.end()
            if behind == offset and is_any_whole and len(records) < size:
                behind += 1  # a damaged batch's header says another end than what follows it, and nothing does
            if behind > offset:
                read_offsets.add(behind - offset)
                offset, size = behind, _CHUNK_BYTES
            elif size == _LARGEST_CHUNK_BYTES:
                raise _endless(wanted.of, records, 0, offset)
            elif len(records) > 0:
                # One batch is larger than what was asked for, or a damaged one stands before the next.
                size = min(size * 4, _LARGEST_CHUNK_BYTES)
            elif empty.is_the_end(offset, answer.high_watermark):
                return
    finally:
        read_offsets.end(wanted.end - offset)


def _is_left_out(batch: StoredBatch, aborted: AbortedTransactions) -> bool:
    """Whether the batch is a marker, aborted or empty, and not damaged: what a damaged header says does not count."""
    header = batch.header
    if header is None or batch.flaw is not None:
        return False
    is_control = header.attributes & CONTROL != 0
    if (is_control or header.record_count == 0) and not has_valid_crc(batch.data, header):
        return False
    if aborted.leaves_out(header, batch.data):
        return has_valid_crc(batch.data, header)
    return is_control or header.record_count == 0


def _fetch(cluster: Cluster, of: TopicPartition, offset: int, size: int, committed: bool) -> FetchedPartition:
    partition = {"partition": of.partition, "fetch_offset": offset, "partition_max_bytes": size}
    body = {
        "max_wait_ms": _WAIT_MS,
        "min_bytes": 1,
        "max_bytes": size,
        "isolation_level": int(committed),
        "topics": [{"topic": of.topic, "partitions": [partition]}],
    }

    def ask(broker: BrokerConnection) -> FetchedPartition:
        code, found = broker.fetch(body)
        check_code(of, code)
        if found is None:
            raise Retry(f"{of}: the broker's answer does not speak of it")
        if found.error_code != _OFFSET_OUT_OF_RANGE:
            check_code(of, found.error_code)
        return found

    return cluster.ask_leader(of, ask)


def _batches(of: TopicPartition, records: memoryview, from_offset: int, high_watermark: int) -> Iterator[StoredBatch]:
    """All that came whole; a broker cuts the last one wherever its size limit falls. `from_offset`: no record before it
    is in those that are compressed and begin with it. Raises TopicTrouble where nothing tells where a batch ends.
    """
    start, least = 0, from_offset
    while (end := _end_of(of, records, start, least)) is not None:
        if records[start + _MAGIC_AT] >= MAGIC_2:
            batch = _with_header(records, start, end, high_watermark)
        else:
            (last,) = _INT64.unpack_from(records, start)
            holds_others = records[start + _ATTRIBUTES_AT] & CODEC_MASK
            batch = StoredBatch(records, start, end, min(least, last) if holds_others else last, last, None)
        yield batch
        start, least = end, batch.last_offset + 1


def _end_of(of: TopicPartition, records: memoryview, start: int, offset: int) -> int | None:
    """As `next_batch_end`, but of a batch of an unknown magic too: its length is where all have it."""
    if len(records) - start < HEADER_UP_TO_MAGIC_BYTES:
        return None
    (length,) = _INT32.unpack_from(records, start + _LENGTH_AT)
    if length < MIN_BATCH_LENGTH:
        raise _endless(of, records, start, offset)
    end: int = start + LOG_OVERHEAD_BYTES + length
    return end if end <= len(records) else None


def _endless(of: TopicPartition, records: memoryview, start: int, offset: int) -> TopicTrouble:
    (length,) = _INT32.unpack_from(records, start + _LENGTH_AT)
    return TopicTrouble(
        f"{of}: the batch at offset {offset} is damaged: it states a length of {length} bytes, so nothing tells where "
        "the next one begins. Restore the partition from a replica, or read as far as that (endingOffsets of the raw "
        "source)"
    )


def _with_header(records: memoryview, start: int, end: int, high_watermark: int) -> StoredBatch:
    """Of magic 2 or later. Where a batch with a wrong CRC ends is told by the next one's beginning, if it is there."""
    (base,) = _INT64.unpack_from(records, start)
    (behind,) = _INT64.unpack_from(records, end) if len(records) - end >= _INT64.size else (None,)
    if end - start < HEADER_BYTES:
        short = f"the batch at offset {base} is shorter than a batch's header"
        return StoredBatch(records, start, end, base, base if behind is None else max(base, behind - 1), None, short)
    header = RecordBatch(records, start, end)
    last, magic = base + header.last_offset_delta, magic_at(records, start)
    is_in_order = base <= last < (high_watermark if behind is None else behind)
    if not is_in_order and (magic != MAGIC_2 or not has_valid_crc(records, header)):
        last = base if behind is None else max(base, behind - 1)
    flaw = None if magic == MAGIC_2 else f"the batch at offset {base} has magic {magic}, which is not known"
    return StoredBatch(records, start, end, base, last, header, flaw)
