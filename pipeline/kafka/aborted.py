"""Which batches of a fetched range belong to aborted transactions, as Java's consumer tells (KIP-98)."""

from collections.abc import Sequence
from struct import Struct

from sluicegate.protocol.records.record_batch import CONTROL, HEADER_BYTES, TRANSACTIONAL, RecordBatch

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
