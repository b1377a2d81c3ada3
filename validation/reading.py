"""Opens a partition's records for rules, whatever their magic and codec."""

from collections.abc import Iterator
from contextlib import contextmanager

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import DecompressedStream, Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, PayloadLimits
from sluicegate.protocol.records.contents import RecordContents, WantedParts
from sluicegate.protocol.records.message_contents import MessageContents
from sluicegate.protocol.records.message_set import read_message
from sluicegate.protocol.records.record_batch import (
    HEADER_BYTES,
    MAGIC_2,
    NO_PRODUCER_ID,
    RecordBatch,
    magic_at,
    next_batch_end,
)
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.rules.rule import Part

_NOTHING = memoryview(b"")


class Batch:
    """One partition's validated, good records: a batch of magic 2, or a set of older messages.

    `record_count` is the validated number of records, at least 1. `end` is the end of the batch, or of the first
    message. `codec` is the payload's codec. `producer_id` is -1 if there is none.
    """

    def __init__(self, topic: str, partition: int, records: memoryview, record_count: int) -> None:
        self.topic = topic
        self.partition = partition
        self.records = records
        self.record_count = record_count
        self.is_old = magic_at(records, 0) < MAGIC_2
        self.end = next_batch_end(records, 0) or 0
        self.producer_id = NO_PRODUCER_ID
        if self.is_old:
            self.codec = Codec(read_message(records, 0, self.end).codec_id)
        else:
            head = RecordBatch(records, 0, self.end)
            self.producer_id = head.producer_id
            self.codec = Codec(head.codec_id)


class ContentReader:
    """A reader of record contents for one thread. It uses the thread's decompressor."""

    def __init__(self, decompressor: Decompressor) -> None:
        self._decompressor = decompressor

    @contextmanager
    def contents(
        self,
        batch: Batch,
        parts: Part,
        limits: ValidationLimits,
        budget: DecompressionBudget,
        header_names: frozenset[bytes] | None = None,
    ) -> Iterator[RecordContents | MessageContents]:
        """Return an iterator over the records that extracts only the required parts.

        `header_names` contains the names of the headers to extract; None means all.
        """
        wanted = WantedParts(
            Part.KEY in parts,
            Part.VALUE in parts,
            Part.HEADERS in parts,
            limits.max_decompression_window_bytes,
            header_names=header_names,
        )
        try:
            yield (
                self._old(batch, wanted, limits, budget)
                if batch.is_old
                else self._of_magic_2(batch, wanted, limits, budget)
            )
        finally:
            self._decompressor.close()

    @contextmanager
    def beginnings(
        self, batch: Batch, most_bytes: int, limits: ValidationLimits, budget: DecompressionBudget
    ) -> Iterator[RecordContents]:
        """Return an iterator over a magic 2 batch that extracts at most `most_bytes` of each key and value."""
        wanted = WantedParts(True, True, False, limits.max_decompression_window_bytes, most_bytes)
        try:
            yield self._of_magic_2(batch, wanted, limits, budget)
        finally:
            self._decompressor.close()

    def _of_magic_2(
        self, batch: Batch, wanted: WantedParts, limits: ValidationLimits, budget: DecompressionBudget
    ) -> RecordContents:
        records = batch.records
        head = RecordBatch(records, 0, batch.end)
        count, base = head.record_count, head.base_timestamp
        if batch.codec is Codec.NONE:
            return RecordContents(records, HEADER_BYTES, head.end, None, count, base, wanted, budget)
        pieces = self._open(batch.codec, records[HEADER_BYTES : head.end], limits, budget)
        first = pieces.more() or _NOTHING
        return RecordContents(first, 0, len(first), pieces, count, base, wanted, budget)

    def _old(
        self, batch: Batch, wanted: WantedParts, limits: ValidationLimits, budget: DecompressionBudget
    ) -> MessageContents:
        records = batch.records
        pieces = None
        if batch.codec is not Codec.NONE:
            wrapper = read_message(records, 0, batch.end)
            value = records[wrapper.value_at : wrapper.value_at + wrapper.value_size]
            pieces = self._open(batch.codec, value, limits, budget, wrapper.magic)
        return MessageContents(records, pieces, wanted, budget)

    def _open(
        self,
        codec: Codec,
        payload: memoryview,
        limits: ValidationLimits,
        budget: DecompressionBudget,
        magic: int = MAGIC_2,
    ) -> DecompressedStream:
        bounds = PayloadLimits(limits.plain_limit(len(payload)), limits.max_decompression_window_bytes, budget)
        return self._decompressor.open(codec, payload, bounds, magic)
