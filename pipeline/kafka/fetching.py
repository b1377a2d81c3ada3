"""Fetches whole batches in an offset range as the broker stores them. Blocking.

An empty response before the end of the range has several possible causes. Compaction may have removed the rest of the
log. A new leader may not know its high watermark or last stable offset yet. A read from remote storage (KIP-405) may
take longer than the broker's `remote.fetch.max.wait.ms`; the broker then returns no error, the high watermark and no
records, and the same request may succeed later. Records that the leader stores locally are never missing from a
response.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from sluicegate.pipeline.kafka import read_offsets
from sluicegate.pipeline.kafka.cluster import (
    KafkaCluster,
    OffsetRange,
    RetryRequest,
    TopicPartition,
    TopicTrouble,
    check_code,
)
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

_TIMEOUT_SECONDS = 60.0


class RemoteRecordsMissing(TopicTrouble):
    """Raised if records in remote storage do not arrive. The message names them and gives a fix."""


class DataLoss(Exception):
    """Raised if requested offsets no longer exist: deleted at the log's start, or truncated at its end.

    `found` is the next existing offset, or the end of the request.
    """

    def __init__(self, wanted: OffsetRange, offset: int, found: int) -> None:
        super().__init__(f"{wanted.of}: offsets {offset} to {found - 1} are gone")
        self.first, self.found = offset, found


class EmptyResponses:
    """Counts consecutive empty responses at one offset.

    Call `is_range_complete` for each empty response, and `end` when records arrive.
    """

    def __init__(self, cluster: KafkaCluster, wanted: OffsetRange, committed: bool) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._committed = committed
        self._since: float | None = None
        self._held_here = False

    def end(self) -> None:
        """Note that records arrived."""
        self._since, self._held_here = None, False

    def is_range_complete(self, offset: int, high_watermark: int) -> bool:
        """Return whether no record is left between `offset` and the end of the range. If false, fetch again.

        Raises DataLoss if the log was truncated, and RemoteRecordsMissing after the timeout.
        """
        begun = self._since is None
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        is_readable = high_watermark >= self._wanted.end and self._readable_to() >= self._wanted.end
        if is_readable and self._held_here:
            return True  # the leader stores this offset locally, and has returned no data twice
        local = self._cluster.local_start(self._wanted.of)
        self._held_here = is_readable and local <= offset
        if begun or now - self._since < _TIMEOUT_SECONDS:
            return False
        if not is_readable:
            raise DataLoss(self._wanted, offset, self._wanted.end)
        raise RemoteRecordsMissing(
            f"{self._wanted.of}: the broker returned no records at offset {offset} for {_TIMEOUT_SECONDS:.0f} s, "
            f"although the log contains more; offsets below {local} are in remote storage, whose reads probably take "
            f"longer than the broker's remote.fetch.max.wait.ms: raise it or fix the remote storage, and start again"
        )

    def _readable_to(self) -> int:
        return self._cluster.offsets([self._wanted.of], LATEST, self._committed)[self._wanted.of]


_TYPE_AT = 2  # in a control record's key: version int16, type int16
_INT16 = Struct(">h")
_ABORT = 0


class AbortedTransactions:
    """The aborted transactions in one response. `aborted` contains the producer id and the first offset of each.
    Control records mark their ends.

    A control batch without a record ends nothing. The log cleaner empties a marker only after all records of its
    transaction are gone, and brokers then no longer report that transaction (CompletedFetch.containsAbortMarker,
    CleanedTransactionMetadata.onControlBatchRead).
    """

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._coming = sorted(((offset, producer_id) for producer_id, offset in aborted), reverse=True)
        self._open: set[int] = set()

    def is_aborted(self, batch: RecordBatch, data: memoryview) -> bool:
        """Return whether the batch belongs to an aborted transaction. Call this method for each batch, in order."""
        last_offset = batch.base_offset + batch.last_offset_delta
        while self._coming and self._coming[-1][0] <= last_offset:
            self._open.add(self._coming.pop()[1])
        if batch.attributes & CONTROL:
            if batch.record_count > 0 and _control_type(batch, data) == _ABORT:
                self._open.discard(batch.producer_id)
            return False
        return bool(batch.attributes & TRANSACTIONAL) and batch.producer_id in self._open


def _control_type(batch: RecordBatch, data: memoryview) -> int:
    """Return the type of a control batch: 0 for abort, 1 for commit. Control batches are never compressed."""
    position = _after_varint(data, batch.start + HEADER_BYTES) + 1  # length, attributes
    for _field in ("timestamp delta", "offset delta", "key size"):
        position = _after_varint(data, position)
    found: int = _INT16.unpack_from(data, position + _TYPE_AT)[0]
    return found


def _after_varint(data: memoryview, position: int) -> int:
    while data[position] & 0x80:
        position += 1
    return position + 1


_WAIT_MS = 500
_FETCH_BYTES = 8 << 20
_LARGEST_FETCH_BYTES = 1 << 30
_OFFSET_OUT_OF_RANGE = 1
_ATTRIBUTES_AT = 17  # in a message of magic 0 or 1, after offset, size, CRC and magic
_LENGTH_AT, _MAGIC_AT = 8, 16
_INT32, _INT64 = Struct(">i"), Struct(">q")


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch, or a message of magic 0 or 1, at data[start:end]. `header` is None for such a message.

    `first_offset` is the batch's base offset, and `last_offset` is the offset of its last record. A compressed message
    does not contain the first offset of the messages in it; `first_offset` is then a lower bound. Some records may be
    outside the requested range. `flaw` is the reason why the batch cannot be read, if the reason is known before
    decoding.
    """

    data: memoryview
    start: int
    end: int
    first_offset: int
    last_offset: int
    header: RecordBatch | None
    flaw: str | None = None


def stored_batches(cluster: KafkaCluster, wanted: OffsetRange, committed: bool) -> Iterator[StoredBatch]:
    """Yield every batch with records in [start, end), without control batches.

    If `committed` is true, aborted batches are omitted too. Skips batches that the log cleaner emptied (it keeps them
    for the producer's sequence or the end of the cleaned range), and offsets that compaction removed. Includes corrupt
    batches, because only decoding detects them. Raises DataLoss, TopicTrouble and BrokerUnreachable.
    """
    offset, size, empty = wanted.start, _FETCH_BYTES, EmptyResponses(cluster, wanted, committed)
    try:
        while offset < wanted.end:
            response = _fetch(cluster, wanted.of, offset, size, committed)
            if response.error_code == _OFFSET_OUT_OF_RANGE:
                begins = cluster.offsets([wanted.of], EARLIEST, committed)[wanted.of]
                raise DataLoss(wanted, offset, min(begins, wanted.end) if begins > offset else wanted.end)
            records = response.records
            aborted = AbortedTransactions(response.aborted if committed else ())
            next_offset, is_any_whole = offset, False
            for batch in _batches(wanted.of, records, offset, response.high_watermark):
                next_offset, is_any_whole = max(next_offset, batch.last_offset + 1), True
                if batch.last_offset < offset or _is_left_out(batch, aborted):
                    continue
                if batch.first_offset >= wanted.end:
                    return
                yield batch
            if len(records) > 0:
                empty.end()
            if next_offset == offset and is_any_whole and len(records) < size:
                next_offset += 1  # a damaged last batch claims an earlier end
            if next_offset > offset:
                read_offsets.add(next_offset - offset)
                offset, size = next_offset, _FETCH_BYTES
            elif size == _LARGEST_FETCH_BYTES:
                raise _endless(wanted.of, records, 0, offset)
            elif len(records) > 0:
                # A batch exceeds the requested size, or a damaged batch precedes the next one.
                size = min(size * 4, _LARGEST_FETCH_BYTES)
            elif empty.is_range_complete(offset, response.high_watermark):
                return
    finally:
        read_offsets.end(wanted.end - offset)


def _is_left_out(batch: StoredBatch, aborted: AbortedTransactions) -> bool:
    """Return whether the batch is an intact marker, aborted or empty. Headers of corrupt batches are not trusted."""
    header = batch.header
    if header is None or batch.flaw is not None:
        return False
    is_control = header.attributes & CONTROL != 0
    if (is_control or header.record_count == 0) and not has_valid_crc(batch.data, header):
        return False
    if aborted.is_aborted(header, batch.data):
        return has_valid_crc(batch.data, header)
    return is_control or header.record_count == 0


def _fetch(cluster: KafkaCluster, of: TopicPartition, offset: int, size: int, committed: bool) -> FetchedPartition:
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
            raise RetryRequest(f"{of}: the partition is missing in the broker's response")
        if found.error_code != _OFFSET_OUT_OF_RANGE:
            check_code(of, found.error_code)
        return found

    return cluster.ask_leader(of, ask)


def _batches(of: TopicPartition, records: memoryview, from_offset: int, high_watermark: int) -> Iterator[StoredBatch]:
    """Yield all complete batches. A broker truncates the last batch at its size limit.

    `from_offset` is a lower bound of the first batch's offsets. Raises TopicTrouble if the end of a batch is unknown.
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
    """Return the end as `next_batch_end` does, but also for unknown magics, whose length field is in the same place."""
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
        f"{of}: the batch at offset {offset} is corrupt: its length field is {length}, so the start of the next batch "
        f"is unknown. Restore the partition from a replica, or read up to this offset (endingOffsets of the "
        "raw source)"
    )


def _with_header(records: memoryview, start: int, end: int, high_watermark: int) -> StoredBatch:
    """Return a batch of magic 2 or later.

    If its CRC is wrong, its last offset is bounded by the next batch's base offset, if that is known.
    """
    (base,) = _INT64.unpack_from(records, start)
    (next_offset,) = _INT64.unpack_from(records, end) if len(records) - end >= _INT64.size else (None,)
    if end - start < HEADER_BYTES:
        short = f"the batch at offset {base} is shorter than a batch's header"
        return StoredBatch(
            records, start, end, base, base if next_offset is None else max(base, next_offset - 1), None, short
        )
    header = RecordBatch(records, start, end)
    last, magic = base + header.last_offset_delta, magic_at(records, start)
    is_in_order = base <= last < (high_watermark if next_offset is None else next_offset)
    if not is_in_order and (magic != MAGIC_2 or not has_valid_crc(records, header)):
        last = base if next_offset is None else max(base, next_offset - 1)
    flaw = None if magic == MAGIC_2 else f"the batch at offset {base} has the unknown magic {magic}"
    return StoredBatch(records, start, end, base, last, header, flaw)
