"""Whole batches of a range of offsets, as they lie on the broker. Blocking."""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from sluicegate.pipeline.kafka import read_offsets
from sluicegate.pipeline.kafka.aborted import AbortedTransactions
from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange, Retry, TopicPartition, check_code
from sluicegate.pipeline.kafka.connection import BrokerConnection
from sluicegate.pipeline.kafka.emptiness import DataLoss, EmptyAnswers
from sluicegate.protocol.fetch_answer import FetchedPartition
from sluicegate.protocol.messages.list_offsets import EARLIEST
from sluicegate.protocol.records.record_batch import (
    CODEC_MASK,
    CONTROL,
    MAGIC_2,
    RecordBatch,
    has_valid_crc,
    magic_at,
    next_batch_end,
)

_WAIT_MS = 500
_CHUNK_BYTES = 8 << 20
_LARGEST_CHUNK_BYTES = 1 << 30
_OFFSET_OUT_OF_RANGE = 1
_ATTRIBUTES_AT = 17  # of a message of magic 0 or 1: behind its offset, size, CRC and magic
_INT64 = Struct(">q")


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch, or a message of magic 0 or 1, at data[start:end]; `header` is None for such a message.

    `first_offset` is that of the batch as it was written, `last_offset` that of its last record. A message that is
    compressed holds others and does not say which: then `first_offset` is the least that it can be. Some of its records
    may lie before the range that was asked for, or behind it.
    """

    data: memoryview
    start: int
    end: int
    first_offset: int
    last_offset: int
    header: RecordBatch | None

    @property
    def is_empty(self) -> bool:
        """Whether it says, with a CRC that is right, that it has no records (a header alone, as log cleaners keep)."""
        return self.header is not None and self.header.record_count == 0 and has_valid_crc(self.data, self.header)


def stored_batches(cluster: Cluster, wanted: OffsetRange, committed: bool) -> Iterator[StoredBatch]:
    """Every batch with records in [start, end), control batches left out, and with `committed` aborted ones too.

    A batch that the log cleaner has emptied, and kept for its producer's sequence or as the end of what it cleaned, has
    no records.

    Raises DataLoss, TopicTrouble and BrokerUnreachable. What compaction has removed is passed over.
    """
    offset, size, empty = wanted.start, _CHUNK_BYTES, EmptyAnswers(cluster, wanted, committed)
    try:
        while offset < wanted.end:
            answer = _fetch(cluster, wanted.of, offset, size, committed)
            if answer.error_code == _OFFSET_OUT_OF_RANGE:
                begins = cluster.offsets([wanted.of], EARLIEST, committed)[wanted.of]
                raise DataLoss(wanted, offset, min(begins, wanted.end) if begins > offset else wanted.end)
            records = answer.records
            aborted = AbortedTransactions(answer.aborted if committed else ())
            behind = offset
            for batch in _batches(records, offset):
                behind = batch.last_offset + 1
                if batch.last_offset < offset:
                    continue
                if batch.header is not None and aborted.leaves_out(batch.header, batch.data):
                    continue
                if batch.header is not None and (batch.header.attributes & CONTROL or batch.is_empty):
                    continue
                if batch.first_offset >= wanted.end:
                    return
                yield batch
            if len(records) > 0:
                empty.end()
            if behind > offset:
                read_offsets.add(behind - offset)
                offset, size = behind, _CHUNK_BYTES
            elif len(records) > 0:
                size = min(size * 4, _LARGEST_CHUNK_BYTES)  # one batch is larger than what was asked for
            elif empty.is_the_end(offset, answer.high_watermark):
                return
    finally:
        read_offsets.end(wanted.end - offset)


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


def _batches(records: memoryview, from_offset: int) -> Iterator[StoredBatch]:
    """All that came whole; a broker cuts the last one wherever its size limit falls. `from_offset`: no record before it
    is in those that are compressed and begin with it.
    """
    start, least = 0, from_offset
    while (end := next_batch_end(records, start)) is not None:
        if magic_at(records, start) == MAGIC_2:
            header = RecordBatch(records, start, end)
            last = header.base_offset + header.last_offset_delta
            yield StoredBatch(records, start, end, header.base_offset, last, header)
        else:
            (last,) = _INT64.unpack_from(records, start)
            holds_others = records[start + _ATTRIBUTES_AT] & CODEC_MASK
            yield StoredBatch(records, start, end, min(least, last) if holds_others else last, last, None)
        start, least = end, last + 1
