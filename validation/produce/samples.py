"""Adds samples to bad records (`samples`): the beginnings of keys and values. This requires reading the batch again.

Only batches of magic 2 have samples. In older message sets, a broker's record errors do not identify the message.
"""

from collections.abc import Sequence
from dataclasses import replace

from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.reading import Batch, ContentReader
from sluicegate.validation.validated_request import FixedBatch
from sluicegate.validation.validator import Submission
from sluicegate.validation.verdict import BadRecord, Beginning, Finding, RecordSample, Verdict

SHOWN_BYTES = 256
"""The maximum number of bytes shown of a key or a value."""
# The maximum for all batches in a request together, so that samples stay small compared with the request.
_MOST_OF_A_REQUEST = 1000


class Sampling:
    """A helper that adds samples to the first `limits.max_samples` bad records in each batch of one request."""

    def __init__(self, limits: ValidationLimits, decompressor: Decompressor, budget: DecompressionBudget) -> None:
        self._limits = limits
        self._reader = ContentReader(decompressor)
        self._budget = budget
        self._left = _MOST_OF_A_REQUEST

    def sampled_finding(self, finding: Finding, topic: str, partition: int, records: memoryview | None) -> Finding:
        """Return the finding about a batch, with samples of its bad records. Raises the errors of `budget`."""
        asked = finding.bad_records[: min(self._limits.max_samples, self._left)]
        if not asked or records is None:
            return finding
        batch = Batch(topic, partition, records, finding.records)
        if batch.is_old:
            return finding
        self._left -= len(asked)
        shown = self._with_contents(asked, batch)
        return replace(finding, bad_records=(*shown, *finding.bad_records[len(shown) :]))

    def with_samples(
        self,
        place: tuple[int, int],
        submission: Submission,
        verdict: Verdict,
        observed: dict[tuple[int, int], tuple[Finding, ...]],
        fixed: dict[tuple[int, int], FixedBatch],
    ) -> Verdict:
        """Return the verdict with samples. Also adds samples to the partition's entries in `observed` and `fixed`."""
        where = (submission.topic, submission.partition, submission.records)
        if place in observed:
            observed[place] = tuple(self.sampled_finding(each, *where) for each in observed[place])
        if place in fixed:
            fixed[place] = replace(fixed[place], finding=self.sampled_finding(fixed[place].finding, *where))
        return self.sampled_finding(verdict, *where) if isinstance(verdict, Finding) else verdict

    def _with_contents(self, asked: Sequence[BadRecord], batch: Batch) -> list[BadRecord]:
        shown = []
        try:
            with self._reader.beginnings(batch, SHOWN_BYTES, self._limits, self._budget.for_rereading()) as found:
                for bad in asked:
                    found.skip_to(bad.index)
                    found.read_next()
                    key = _beginning(found.key, found.key_size)
                    shown.append(replace(bad, contents=RecordSample(key, _beginning(found.value, found.value_size))))
        except OverLimit:  # the second pass exceeded the limit, so these records get no samples
            return shown
        return shown


def _beginning(data: bytes | None, size: int) -> Beginning | None:
    return None if data is None else Beginning(data, size)
