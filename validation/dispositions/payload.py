"""The whole plain payload of a batch, for dispositions that rewrite its records, and the batch around a new payload."""

from sluicegate.protocol.records.codecs.codec import Codec, Oddity
from sluicegate.protocol.records.codecs.compression import compress
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from sluicegate.protocol.records.restamp import with_payload
from sluicegate.validation.policy import Framing, ValidationLimits

_HARMLESS = (None, Oddity.UNREAD)


def plain_payload(
    payload: memoryview,
    codec: Codec,
    framing: Framing,
    limits: ValidationLimits,
    decompressor: Decompressor,
    budget: DecompressionBudget,
) -> memoryview | None:
    """Return the plain payload; None if it is broken, or, unless `framing` is BROKER, if compressing it again would
    repair it. Raises the errors of `budget`.
    """
    if codec is Codec.NONE:
        budget.check_at_once(len(payload))
        return payload
    try:
        found = decompressor.decompress(codec, payload, min(limits.plain_limit(len(payload)), budget.plain_left))
        budget.check_at_once(len(found.data))
        budget.worked(len(found.data))
    except OverLimit:
        return None
    if found.failure is not None or (found.oddity not in _HARMLESS and framing is not Framing.BROKER):
        return None
    return memoryview(bytes(found.data))


def payload_of(batch: RecordBatch, records: memoryview) -> memoryview:
    """Return the payload of a batch as it came, compressed or not."""
    return records[batch.start + HEADER_BYTES : batch.end]


def with_records(batch: RecordBatch, plain: bytearray) -> bytes:
    """Return the batch with other records, compressed by its own codec; everything else in its header stays, apart from
    length and CRC.
    """
    packed = compress(Codec(batch.codec_id), plain)
    return with_payload(batch, packed, batch.base_timestamp, batch.max_timestamp)
