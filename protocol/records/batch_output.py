"""Writes a batch's records in order and compresses them in pieces.

The uncompressed payload is never in memory as a whole.
"""

from crc32c import crc32c

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.compression import PIECE_BYTES, compressor_of
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import HEADER, HEADER_BYTES, LOG_OVERHEAD_BYTES, RecordBatch

_CRC_COVERS_FROM = 21


class BatchTooLarge(Exception):
    """Raised if the batch would exceed its maximum size."""


class BatchOutput:
    """A new payload for `batch`, compressed with the codec in its attributes.

    The caller appends records to `plain` and calls `flush` from time to time. `most_bytes` is the maximum size of the
    batch with its header, and `most_plain_bytes` that of the decompressed payload.
    """

    def __init__(self, batch: RecordBatch, most_bytes: int, most_plain_bytes: int, budget: DecompressionBudget) -> None:
        self.plain = bytearray()
        self._batch = batch
        self._compressor = compressor_of(Codec(batch.codec_id))
        self._made = bytearray(HEADER_BYTES)
        self._most_bytes = most_bytes
        self._plain_left = most_plain_bytes
        self._budget = budget

    def flush(self) -> None:
        """Compress all whole pieces. Raises BatchTooLarge and the errors of the budget."""
        plain = self.plain
        while len(plain) >= PIECE_BYTES:
            piece = plain[:PIECE_BYTES]
            del plain[:PIECE_BYTES]
            self._grow(PIECE_BYTES, self._compressor.add(piece))

    def finished(self, base_timestamp: int, max_timestamp: int) -> bytes:
        """Return the whole batch. Raises the same errors as `flush`.

        Count, offsets, attributes, producer id, epoch and sequence are those of the original batch.
        """
        self.flush()
        self._grow(len(self.plain), self._compressor.end(self.plain))
        self.plain = bytearray()
        batch, made = self._batch, self._made
        fields = (
            batch.attributes,
            batch.last_offset_delta,
            base_timestamp,
            max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.record_count,
        )
        before = (batch.base_offset, len(made) - LOG_OVERHEAD_BYTES, batch.partition_leader_epoch, batch.magic)
        HEADER.pack_into(made, 0, *before, 0, *fields)
        HEADER.pack_into(made, 0, *before, crc32c(memoryview(made)[_CRC_COVERS_FROM:]), *fields)
        self._budget.worked(len(made))
        return bytes(made)

    def _grow(self, plain_bytes: int, compressed: bytes) -> None:
        self._plain_left -= plain_bytes
        self._made += compressed
        if self._plain_left < 0 or len(self._made) > self._most_bytes:
            raise BatchTooLarge
        self._budget.worked(plain_bytes * self._compressor.work)
