"""A metric's declaration: its name, help text, labels, advice, and the source of its value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sluicegate.proxy.reporting.metrics.batch_events import DETAIL_LABELS, BatchEvent, Counted, Unit
from sluicegate.proxy.reporting.metrics.counters import Durations, LabelledDurations, Snapshot
from sluicegate.validation.verdict import Finding

TOPIC = "topic"

Reading = float | Durations | LabelledDurations | Mapping[Any, float]
"""One value, or one value for each set of labels. The key is a string for one label, and a tuple for several."""
Read = Callable[[Snapshot], Reading]


class Kind(Enum):
    """A Prometheus metric type."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. `text` is its help text.

    `advice` describes when to look at it. `always` contains the label values of series that exist before the first
    count, so that the first count appears as an increase. `read` is None if the value does not come from a Snapshot.
    `counted` describes the batch events that the metric counts; it is None if other code increments a field of
    `Counters`.
    """

    name: str
    kind: Kind
    text: str
    advice: str
    read: Read | None = None
    labels: tuple[str, ...] = ()
    always: tuple[str | tuple[str, ...], ...] = ()
    counted: Counted | None = None

    @property
    def shown_name(self) -> str:
        """The name in a scrape, with the suffix `_total` for counters."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name

    @property
    def series_names(self) -> tuple[str, ...]:
        """The names of the series, for queries."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(f"{self.name}_{part}" for part in ("bucket", "count", "sum"))
        return (self.shown_name,)


def counter(
    name: str,
    text: str,
    advice: str,
    read: Read,
    labels: tuple[str, ...] = (),
    always: tuple[str | tuple[str, ...], ...] = (),
) -> Family:
    """Declare a counter."""
    return Family(name, Kind.COUNTER, text, advice, read, labels, always)


def batch_counter(
    name: str,
    text: str,
    advice: str,
    *events: BatchEvent,
    labels: tuple[str, ...] = (TOPIC,),
    unit: Unit = Unit.BATCHES,
    when: Callable[[Finding], bool] | None = None,
) -> Family:
    """Declare a counter of batch events, which needs no other code.

    `labels` may contain `topic`, and the other label if all `events` have it. `when` selects batches by their verdict.
    Raises ValueError for labels that an event does not have.
    """
    for event in events:
        known = (TOPIC, DETAIL_LABELS[event]) if event in DETAIL_LABELS else (TOPIC,)
        if labels != tuple(label for label in known if label in labels):
            raise ValueError(f"{name}: labels {labels}, but batches {event.name} have {known}, in this order")
    always = () if labels else ((),)  # without labels, the only series exists from the start
    return Family(name, Kind.COUNTER, text, advice, _reads(name), labels, always, Counted(events, unit, when))


def _reads(name: str) -> Read:
    def read(snapshot: Snapshot) -> Reading:
        return snapshot.counters.batch_counts[name]

    return read


def gauge(
    name: str,
    text: str,
    advice: str,
    read: Read | None,
    labels: tuple[str, ...] = (),
    always: tuple[str | tuple[str, ...], ...] = (),
) -> Family:
    """Declare a gauge."""
    return Family(name, Kind.GAUGE, text, advice, read, labels, always)


def histogram(name: str, text: str, advice: str, read: Read, labels: tuple[str, ...] = ()) -> Family:
    """Declare a histogram of durations in seconds."""
    return Family(name, Kind.HISTOGRAM, text, advice, read, labels)
