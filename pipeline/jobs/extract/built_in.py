"""Applies the built-in extractors to whole columns, for the job `extract`.

A test proves that they match `sluicegate.pipeline.jobs.extract.extractors`, which work record by record.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.extract.event_time import LATEST_MS
from sluicegate.pipeline.jobs.extract.extractors import NO_TIME, InvalidTimestamp, TooLate
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.validation.units import diagnose

NAMES = ("fail", "skip", "previous", "wallclock")
Int64s = NDArray[np.int64]
_REPAIR = "sluicegate-spark repair fixes the topic"
_WAYS = (
    "which is negative: --extractor skip drops such records, --extractor previous uses the partition's time, and "
    f"{_REPAIR}"
)
_TOO_LATE = "--too-late skip drops such records, --too-late null keeps them without an event time"
_NONE_BEFORE = "which is negative, and no earlier record of its partition has a valid one"


@dataclass(frozen=True, slots=True)
class BuiltInExtractor:
    """A built-in extractor by its name on the command line, which is one of `NAMES`.

    `too_late` determines the treatment of times that are too late for Spark.
    """

    name: str
    too_late: TooLate = TooLate.FAIL

    @property
    def reads_times(self) -> bool:
        """Return whether the extractor uses records' timestamps."""
        return self.name != "wallclock"

    def event_times(self, of: TopicPartition, offsets: Int64s, times: Int64s, highest: int, now_ms: int) -> Int64s:
        """Return the event times (ms) of a partition's next records.

        Records with negative event times are skipped. Times after LATEST_MS remain only if `too_late` is NULL.
        `highest` is the highest time so far, or NO_TIME before the first record. Raises InvalidTimestamp.
        """
        if not self.reads_times:
            return np.full(len(times), now_ms, np.int64)
        negative, late = times < 0, times > LATEST_MS
        bad = negative & (self.name == "fail")
        found = np.where(late, NO_TIME, times) if self.too_late is TooLate.SKIP else times
        if self.name == "previous" and negative.any():
            found = np.where(negative, _highest_before(found, highest), found)
            bad |= negative & (found < 0)
        if self.too_late is TooLate.FAIL:
            bad |= late
        if bad.any():
            first = int(np.argmax(bad))
            raise InvalidTimestamp(self._why(f"{of} offset {offsets[first]}", int(times[first]), now_ms))
        return found

    def _why(self, place: str, at: int, now_ms: int) -> str:
        if at < 0:
            return f"{place} has the timestamp {at}, {_NONE_BEFORE if self.name == 'previous' else _WAYS}"
        reach = "is later than Spark's latest timestamp"
        return f"{place}: the event time {at} {reach}; it {diagnose(at, now_ms)}. {_TOO_LATE}, and {_REPAIR}"


def _highest_before(times: Int64s, highest: int) -> Int64s:
    """Return the highest time before each record; NO_TIME if there is none."""
    valid = np.where(times < 0, NO_TIME, times)
    return np.maximum.accumulate(np.concatenate(([highest], valid)))[:-1]
