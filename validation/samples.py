"""What bad records hold, for an operator who wants to see it (`samples`): read once more, the beginning of each.

Of magic 2; of older messages a broker's record errors do not say which of a set is meant.
"""

from collections.abc import Sequence
from dataclasses import replace

from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Allowance, OverLimit
from sluicegate.validation.fixes import Fixed
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.rules.reading import Batch, ContentReader
from sluicegate.validation.validator import Submission
from sluicegate.validation.verdict import BadRecord, Beginning, Contents, Rejected, Verdict

SHOWN_BYTES = 256
"""Of a key or a value, at most."""
# Of all batches of a request together, so that what is kept stays small beside the request.
_MOST_OF_A_REQUEST = 1000


class Sampling:
    """For one request: adds to bad records what they hold, of the first `limits.max_samples` of each batch."""

    def __init__(self, limits: ValidationLimits, decompressor: Decompressor, allowance: Allowance) -> None:
        self._limits = limits
        self._reader = ContentReader(decompressor)
        self._allowance = allowance
        self._left = _MOST_OF_A_REQUEST

    def shown(self, rejected: Rejected, topic: str, partition: int, records: memoryview | None) -> Rejected:
        """The same rejection of a batch, with what its bad records hold. Raises what `allowance` raises to give way."""
        asked = rejected.bad_records[: min(self._limits.max_samples, self._left)]
        if not asked or records is None:
            return rejected
        batch = Batch(topic, partition, records, rejected.records)
        if batch.is_old:
            return rejected
        self._left -= len(asked)
        shown = self._with_contents(asked, batch)
        return replace(rejected, bad_records=(*shown, *rejected.bad_records[len(shown) :]))

    def shown_everywhere(
        self,
        place: tuple[int, int],
        submission: Submission,
        verdict: Verdict,
        observed: dict[tuple[int, int], Rejected],
        fixed: dict[tuple[int, int], Fixed],
    ) -> Verdict:
        """The verdict on a partition, and in their places what is only told of it and what it was fixed for."""
        where = (submission.topic, submission.partition, submission.records)
        if place in observed:
            observed[place] = self.shown(observed[place], *where)
        if place in fixed:
            fixed[place] = replace(fixed[place], rejected=self.shown(fixed[place].rejected, *where))
        return self.shown(verdict, *where) if isinstance(verdict, Rejected) else verdict

    def _with_contents(self, asked: Sequence[BadRecord], batch: Batch) -> list[BadRecord]:
        shown = []
        try:
            with self._reader.beginnings(batch, SHOWN_BYTES, self._limits, self._allowance.to_read_again()) as found:
                for bad in asked:
                    found.skip_to(bad.index)
                    found.read_next()
                    key = _beginning(found.key, found.key_size)
                    shown.append(replace(bad, contents=Contents(key, _beginning(found.value, found.value_size))))
        except OverLimit:  # it was within when it was validated; then these are told without
            return shown
        return shown


def _beginning(data: bytes | None, size: int) -> Beginning | None:
    return None if data is None else Beginning(data, size)
