"""Decodes stored batches of every magic and codec into columns, and describes unreadable batches."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.protocol.integers import ALL_64
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.columns import BatchTotals, Columns, read_columns, read_totals
from sluicegate.protocol.records.message_set import BrokenMessage, Message, has_crc, inner_messages, read_message
from sluicegate.protocol.records.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    RecordBatch,
    has_valid_crc,
)

_CODECS = tuple(Codec)
_MAX_DECOMPRESSED_BYTES = 2**31 - 1
_NO_TIMESTAMP_TYPE, _CREATE_TIME, _LOG_APPEND_TIME = -1, 0, 1
_NO_PRODUCER = -1
_SIZE_BYTES = 4


class BrokenRecords(Exception):
    """Raised if stored data violate the record format. The message contains the position."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """Values that all records in a batch share. `records` is the number of records; sizes are in bytes."""

    magic: int
    codec: str
    timestamp_type: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    base_offset: int
    size: int
    records: int


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """A decoded batch.

    `payload` contains keys, values and headers at the positions in `columns`, and is valid until the next batch is
    decoded. `columns` is an array of eight rows (offset, timestamp, key position and size, value position and size,
    headers position and size) with one column per record.
    """

    facts: BatchFacts
    payload: memoryview
    columns: NDArray[np.int64]

    @property
    def offset(self) -> NDArray[np.int64]:
        """Return the offsets in ascending order. Compaction leaves gaps."""
        return np.asarray(self.columns[0])

    @property
    def largest_record(self) -> int:
        """Return the size in bytes of the largest record, that is, of its key, value and headers."""
        return int(np.maximum(self.columns[3::2], 0).sum(axis=0).max(initial=0))


class BatchDecoder:
    """Decodes batches into buffers that it reuses. `plain_bytes` is the decompressed size of the last batch's
    records.
    """

    def __init__(self) -> None:
        self._decompressor = Decompressor()
        self.plain_bytes = 0

    def decode(self, batch: StoredBatch) -> DecodedBatch:
        """Decode a batch. Raises BrokenRecords."""
        _check_flaw(batch)
        return self._decode_v2(batch, batch.header) if batch.header is not None else self._decode_legacy(batch)

    def add_up(self, batch: StoredBatch) -> tuple[BatchFacts, BatchTotals] | None:
        """Return a batch's totals, several times faster than by decoding it; None if the batch must be decoded.

        Raises BrokenRecords.
        """
        _check_flaw(batch)
        header = batch.header
        if header is None or header.attributes & LOG_APPEND_TIME:
            return None
        payload, start, end = self._records_of(batch, header)
        self.plain_bytes = end - start
        totals = read_totals(payload, start, end, header.record_count, header.base_timestamp & ALL_64)
        _check_count(totals.records, header)
        return _facts_of(header), totals

    def _decode_v2(self, batch: StoredBatch, header: RecordBatch) -> DecodedBatch:
        payload, start, end = self._records_of(batch, header)
        self.plain_bytes = end - start
        count = header.record_count
        columns = np.empty((8, max(count, 0)), np.int64)
        read = read_columns(
            payload, start, end, count, header.base_offset, header.base_timestamp & ALL_64, Columns(*columns), 0
        )
        _check_count(read, header)
        if header.attributes & LOG_APPEND_TIME:
            columns[1] = header.max_timestamp
        return DecodedBatch(_facts_of(header), payload, columns)

    def _records_of(self, batch: StoredBatch, header: RecordBatch) -> tuple[memoryview, int, int]:
        """Return the uncompressed payload, and the positions at which its records start and end."""
        if not has_valid_crc(batch.data, header):
            raise BrokenRecords(f"the CRC of the batch at offset {header.base_offset} does not match")
        start, end = batch.start + HEADER_BYTES, batch.end
        codec = _codec_of(header.attributes, header.base_offset)
        if codec is Codec.NONE:
            return batch.data, start, end
        payload = self._plain(codec, batch.data[start:end], header.base_offset, header.magic)
        return payload, 0, len(payload)

    def _decode_legacy(self, batch: StoredBatch) -> DecodedBatch:
        """Decode a message of magic 0 or 1, which may contain other messages."""
        try:
            outer = read_message(batch.data, batch.start, batch.end)
            _check_crc(batch.data, outer)
            codec = _codec_of(outer.attributes, outer.offset)
            if codec is Codec.NONE:
                payload, inner = batch.data, [outer]
            elif outer.value_size < 0:
                raise BrokenRecords(f"the compressed message at offset {outer.offset} is empty")
            else:
                value = batch.data[outer.value_at : outer.value_at + outer.value_size]
                payload = self._plain(codec, value, outer.offset, outer.magic)
                inner = inner_messages(payload)
        except BrokenMessage as error:
            raise BrokenRecords(f"the message at offset {batch.last_offset}: {error}") from error
        self.plain_bytes = len(payload)
        columns = np.empty((8, len(inner)), np.int64)
        # Inner offsets of magic 1 are relative: the wrapper contains the offset of the last message. Those of magic 0
        # are absolute.
        shift = outer.offset - inner[-1].offset if outer.magic > 0 and inner else 0
        stamped = outer.is_log_append_time
        for row, message in enumerate(inner):
            _check_crc(payload, message)
            key_at = message.value_at - _SIZE_BYTES - max(message.key_size, 0)
            timestamp = outer.timestamp if stamped else message.timestamp
            columns[:, row] = (
                message.offset + shift, timestamp, key_at, message.key_size, message.value_at, message.value_size, 0, 0,
            )  # fmt: skip
        kind = _NO_TIMESTAMP_TYPE if outer.magic == 0 else _LOG_APPEND_TIME if stamped else _CREATE_TIME
        first = int(columns[0, 0]) if inner else outer.offset
        facts = BatchFacts(
            outer.magic, codec.name.lower(), kind, _NO_PRODUCER, -1, -1, first, batch.end - batch.start, len(inner)
        )
        return DecodedBatch(facts, payload, columns)

    def _plain(self, codec: Codec, data: memoryview, offset: int, magic: int) -> memoryview:
        plain = self._decompressor.decompress(codec, data, _MAX_DECOMPRESSED_BYTES, magic)
        if plain.failure is not None:
            raise BrokenRecords(f"the batch at offset {offset}: {plain.failure.value}")
        return plain.data


def _check_flaw(batch: StoredBatch) -> None:
    if batch.flaw is not None:
        raise BrokenRecords(batch.flaw)


def _check_count(read: int, header: RecordBatch) -> None:
    if read != header.record_count:
        raise BrokenRecords(
            f"record {read} of {header.record_count} of the batch at offset {header.base_offset} is broken"
        )


def _facts_of(header: RecordBatch) -> BatchFacts:
    return BatchFacts(
        header.magic,
        _codec_of(header.attributes, header.base_offset).name.lower(),
        _LOG_APPEND_TIME if header.attributes & LOG_APPEND_TIME else _CREATE_TIME,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.base_offset,
        header.size,
        header.record_count,
    )


def _codec_of(attributes: int, offset: int) -> Codec:
    codec_id = attributes & CODEC_MASK
    if codec_id >= len(_CODECS):
        raise BrokenRecords(f"the batch at offset {offset} has the unknown codec {codec_id}")
    return _CODECS[codec_id]


def _check_crc(data: memoryview, message: Message) -> None:
    if not has_crc(data, data, message.start, message.end):
        raise BrokenRecords(f"the CRC of the message at offset {message.offset} does not match")


_MOST_NAMED = 1000
"""The limit for a chunk; further batches are counted in the last entry."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Unreadable `batches` from `first_offset` to `last_offset`. `stored_bytes` is their size, and `reason` is the
    reason for the first batch.

    The offsets come from the batches' headers if these agree with the next batch.
    """

    first_offset: int
    last_offset: int
    batches: int
    stored_bytes: int
    reason: str

    def __str__(self) -> str:
        count = "1 batch" if self.batches == 1 else f"{self.batches:,} batches"
        return f"offsets {self.first_offset} to {self.last_offset} ({count}) cannot be read: {self.reason}"

    def with_next(self, other: "Unreadable") -> "Unreadable":
        """Return one entry for both."""
        batches, size = self.batches + other.batches, self.stored_bytes + other.stored_bytes
        return Unreadable(self.first_offset, other.last_offset, batches, size, self.reason)


def unreadable(batch: StoredBatch, error: BrokenRecords) -> Unreadable:
    """Return the entry for a batch that could not be decoded."""
    return Unreadable(batch.first_offset, batch.last_offset, 1, batch.end - batch.start, str(error))


def join_adjacent(found: Iterable[Unreadable]) -> tuple[Unreadable, ...]:
    """Join adjacent entries."""
    stretches = UnreadableRanges()
    for each in found:
        stretches.add(each)
    return tuple(stretches.found)


class UnreadableRanges:
    """Joins adjacent entries and limits their number, so that a completely damaged partition uses little memory."""

    def __init__(self) -> None:
        self.found: list[Unreadable] = []

    def add(self, each: Unreadable) -> None:
        """Add an entry. Entries must be in offset order."""
        found = self.found
        if found and (found[-1].last_offset + 1 >= each.first_offset or len(found) == _MOST_NAMED):
            found[-1] = found[-1].with_next(each)
        else:
            found.append(each)
