"""Rewrites whole batches within the limits of a request, for dispositions that change records."""

from sluicegate.protocol.records.batch_output import BatchOutput
from sluicegate.protocol.records.codecs.codec import Codec, Oddity
from sluicegate.protocol.records.codecs.decompression import DecompressedStream, Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, PayloadLimits
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from sluicegate.protocol.records.rewriting import (
    Ask,
    CannotRewrite,
    RecordReader,
    RecordRewriter,
    rewrite_records,
)
from sluicegate.validation.policy import ValidationLimits

_GROWTH_FACTOR = 4
_GROWTH_FREE_BYTES = 1 << 20


class GrowthAllowance:
    """A limit on the rewritten batches of one request: four times the size of the originals, plus 1 MiB in total."""

    def __init__(self) -> None:
        self._free_bytes = _GROWTH_FREE_BYTES

    def most_bytes(self, original: int) -> int:
        """Return the maximum size (bytes) of the rewritten batch for an original of `original` bytes."""
        return _GROWTH_FACTOR * original + self._free_bytes

    def spend(self, original: int, rewritten: int) -> None:
        """Count a rewritten batch."""
        self._free_bytes -= max(0, rewritten - _GROWTH_FACTOR * original)


class Rewriting:
    """The rewriting of one batch.

    `records` is the batch, `most_bytes` the maximum size of the new one, and `budget` is for reading the batch again.
    """

    def __init__(
        self,
        records: memoryview,
        batch: RecordBatch,
        most_bytes: int,
        limits: ValidationLimits,
        decompressor: Decompressor,
        budget: DecompressionBudget,
    ) -> None:
        self.batch = batch
        self._records = records
        self._most_bytes = most_bytes
        self._limits = limits
        self._decompressor = decompressor
        self._budget = budget
        self._pieces: DecompressedStream | None = None
        self._output: BatchOutput | None = None

    @property
    def oddity(self) -> Oddity | None:
        """The part of the payload that brokers ignore, or None. Known only after the whole payload was read."""
        return None if self._pieces is None else self._pieces.oddity

    def changed(self, ask: Ask, watched: tuple[bytes, ...] = ()) -> RecordRewriter | None:
        """Write the batch with the changes that `ask` returns; return None if nothing changes.

        `watched` is passed to RecordReader. Raises CannotRewrite, BatchTooLarge, OverLimit, and the errors of `ask` and
        of the budget.
        """
        batch = self.batch

        def opens() -> RecordReader:
            window = self._limits.max_decompression_window_bytes
            opened = self._opened()
            return RecordReader(opened, batch.record_count, batch.base_timestamp, window, self._budget, watched)

        def writes() -> RecordRewriter:
            is_plain = batch.codec_id == Codec.NONE.value
            most_plain = self._most_bytes if is_plain else self._limits.max_decompressed_bytes
            self._output = BatchOutput(batch, self._most_bytes, most_plain, self._budget)
            return RecordRewriter(self._output, batch.base_timestamp)

        try:
            found = rewrite_records(opens, ask, writes)
        finally:
            self._decompressor.close()
        if self._pieces is not None and self._pieces.failure is not None:
            raise CannotRewrite("its payload cannot be decompressed as a whole")
        return found

    def finished(self, base_timestamp: int, max_timestamp: int) -> bytes:
        """Return the new batch after `changed` has written its records.

        `base_timestamp` and `max_timestamp` are in ms. Raises BatchTooLarge and the errors of the budget.
        """
        assert self._output is not None
        return self._output.finished(base_timestamp, max_timestamp)

    def _opened(self) -> tuple[memoryview | bytes, int, int, DecompressedStream | None]:
        batch, limits = self.batch, self._limits
        start = batch.start + HEADER_BYTES
        if batch.codec_id == Codec.NONE.value:
            return self._records, start, batch.end, None
        payload = self._records[start : batch.end]
        bounds = PayloadLimits(limits.plain_limit(len(payload)), limits.max_decompression_window_bytes, self._budget)
        self._pieces = pieces = self._decompressor.open(Codec(batch.codec_id), payload, bounds)
        first = pieces.more() or b""
        return first, 0, len(first), pieces
