"""The batch events that metrics count.

To count one of these events, declare a metric in `families/` with `batch_counter`
(`sluicegate.proxy.reporting.metrics.family`). No other code is needed.
`sluicegate.proxy.reporting.metrics.topic_labels` counts, copies the counts for a scrape, and moves a topic's counts to
`other` when the topic loses its label.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Any

from sluicegate.validation.verdict import Finding


class BatchEvent(IntEnum):
    """An event of one batch. The comments name the event's label besides `topic`, if there is one."""

    REJECTED = 0  # label `error`
    OBSERVED = auto()  # label `error`
    FIXED = auto()  # label `error`
    QUARANTINED = auto()  # label `error`
    QUARANTINE_FAILED = auto()  # the bad records could not be stored; the producer was told to retry
    COPIED = auto()  # label `error`; the batch was forwarded, and its bad records were copied to the dead-letter topic
    MARKED = auto()  # label `error`; the batch was forwarded, and its bad records were marked
    MASKED = auto()  # sensitive fields of the batch were masked
    REHEARSED = auto()  # label `bound`; a rehearsed bound would reject the batch
    UNREADABLE = auto()  # label `error`; the batch was forwarded, and some clients cannot read it
    FUTURE_TIMESTAMP = auto()  # a valid batch has a timestamp more than an hour ahead


DETAIL_LABELS = {
    BatchEvent.REJECTED: "error",
    BatchEvent.OBSERVED: "error",
    BatchEvent.FIXED: "error",
    BatchEvent.QUARANTINED: "error",
    BatchEvent.COPIED: "error",
    BatchEvent.MARKED: "error",
    BatchEvent.REHEARSED: "bound",
    BatchEvent.UNREADABLE: "error",
}
"""The label that an event has in addition to `topic`.

It has few values, such as the names of error codes or the keys of rehearsed bounds.
"""


class Unit(Enum):
    """The unit of a metric."""

    BATCHES = "batches"
    RECORDS = "bad records of a batch, fixed ones where it was fixed"


@dataclass(frozen=True, slots=True)
class Counted:
    """The batches or records that a metric counts.

    The metric counts `events` in `unit`, for batches whose verdict `when` accepts. If `when` is None, it counts all
    batches.
    """

    events: tuple[BatchEvent, ...]
    unit: Unit
    when: Callable[[Finding], bool] | None


class BatchCounts(dict[str, Counter[Any]]):
    """Each declared metric's counts by the metric's name. The keys of a metric's counts are its label values."""

    def __missing__(self, name: str) -> Counter[Any]:
        return Counter()

    def __add__(self, other: "BatchCounts") -> "BatchCounts":
        return BatchCounts({name: self[name] + other[name] for name in {**self, **other}})

    def copied(self) -> "BatchCounts":
        """Return a copy that another thread may read."""
        return BatchCounts({name: Counter(counts) for name, counts in list(self.items())})
