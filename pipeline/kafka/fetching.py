"""Whole batches of a range of offsets, as they lie on the broker. Blocking."""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from pipeline.kafka.aborted import AbortedTransactions
from pipeline.kafka.cluster import Cluster, OffsetRange, Retry, TopicPartition, check_code
from pipeline.kafka.connection import BrokerConnection
from protocol.fetch_answer import FetchedPartition
from protocol.messages.list_offsets import EARLIEST
from protocol.records.record_batch import CONTROL, RecordBatch, magic_at, next_batch_end

_WAIT_MS = 500
_EMPTY_AT_MOST = 60  # half a minute: a new leader may lag, a log that was cut off has no more
_CHUNK_BYTES = 8 << 20
_LARGEST_CHUNK_BYTES = 1 << 30
_OFFSET_OUT_OF_RANGE = 1
_MAGIC_2 = 2
_INT64 = Struct(">q")


class DataLoss(Exception):
    """Offsets that were asked for are gone: deleted at the log's start, or cut off at its end. `found` is the next that
    is there, or the end of what was asked for.
    """

    def __init__(self, of: TopicPartition, offset: int, found: int) -> None:
        super().__init__(f"{of}: offsets {offset} to {found - 1} are gone")
        self.found = found


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch, or a message of magic 0 or 1, at data[start:end]; `header` is None for such a message.

    `last_offset` is that of its last record. Some of its records may lie before the range that was asked for.
    """

    data: memoryview
    start: int
    end: int
    last_offset: int
    header: RecordBatch | None

    @property
    def first_offset(self) -> int:
        """That of the batch as it was written; of a message, its last."""
        return self.header.base_offset if self.header is not None else self.last_offset


def stored_batches(cluster: Cluster, wanted: OffsetRange, committed: bool) -> Iterator[StoredBatch]:
    """Every batch with records in [start, end), control batches left out, and with `committed` aborted ones too.

    Raises DataLoss, TopicTrouble and BrokerUnreachable. What compaction has removed is passed over.
    """
    offset, size, empty_answers = wanted.start, _CHUNK_BYTES, 0
    while offset < wanted.end:
        answer = _fetch(cluster, wanted.of, offset, size, committed)
        if answer.error_code == _OFFSET_OUT_OF_RANGE:
            begins = cluster.offsets([wanted.of], EARLIEST, committed)[wanted.of]
            raise DataLoss(wanted.of, offset, begins if begins > offset else wanted.end)
        records = answer.records
        aborted = AbortedTransactions(answer.aborted if committed else ())
        behind = offset
        for batch in _batches(records):
            behind = batch.last_offset + 1
            if batch.last_offset < offset:
                continue
            if batch.header is not None and aborted.leaves_out(batch.header, batch.data):
                continue
            if batch.header is not None and batch.header.attributes & CONTROL:
                continue
            if batch.first_offset >= wanted.end:
                return
            yield batch
        if behind > offset:
            offset, size, empty_answers = behind, _CHUNK_BYTES, 0
        elif len(records) > 0:
            size = min(size * 4, _LARGEST_CHUNK_BYTES)  # one batch is larger than what was asked for
        elif answer.high_watermark >= wanted.end:
            return  # nothing is left of the rest: the end of a compacted log
        else:
            empty_answers += 1
            if empty_answers > _EMPTY_AT_MOST:
                raise DataLoss(wanted.of, offset, wanted.end)


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


def _batches(records: memoryview) -> Iterator[StoredBatch]:
    """All that came whole; a broker cuts the last one wherever its size limit falls."""
    start = 0
    while (end := next_batch_end(records, start)) is not None:
        if magic_at(records, start) == _MAGIC_2:
            header = RecordBatch(records, start, end)
            yield StoredBatch(records, start, end, header.base_offset + header.last_offset_delta, header)
        else:
            (offset,) = _INT64.unpack_from(records, start)
            yield StoredBatch(records, start, end, offset, None)
        start = end
