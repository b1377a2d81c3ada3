"""What is counted, as metrics with their series: made when somebody asks.

Which there are is declared in `sluicegate.proxy.reporting.families`. How they are written down for Prometheus is said
in `sluicegate.proxy.reporting.exposition`, and for OpenTelemetry in `sluicegate.proxy.telemetry.metric_points`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sluicegate.proxy.reporting.durations import Durations, DurationsBy
from sluicegate.proxy.reporting.families import FAMILIES
from sluicegate.proxy.reporting.family import Family, Kind, Reading
from sluicegate.proxy.reporting.tally import Snapshot


class Sample(NamedTuple):
    """One series at one moment; its name is the metric's, with `_total`, `_bucket`, `_count` or `_sum` where it is
    one of those.
    """

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Metric:
    """A family at one moment. `type` is what Prometheus calls it, `documentation` its help."""

    name: str
    documentation: str
    type: str
    samples: list[Sample]


Look = Callable[[], Iterable[Metric]]
"""What shows all there is, now."""


def metrics_of(snapshot: Snapshot) -> Iterator[Metric]:
    """Every family with its values."""
    for family in FAMILIES:
        if family.read is not None:
            yield shown(family, family.read(snapshot))


def shown(family: Family, reading: Reading) -> Metric:
    """A family with its values."""
    samples = _of_durations(family, reading) if family.kind is Kind.HISTOGRAM else _of_numbers(family, reading)
    return Metric(family.name, family.text, family.kind.value, list(samples))


def _of_numbers(family: Family, reading: Reading) -> Iterator[Sample]:
    for labels, value in _series(family, reading):
        # A sum of all that a label tells apart has none.
        yield Sample(family.shown_name, dict(zip(family.labels, labels, strict=False)), value)


def _series(family: Family, reading: Reading) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(reading, int | float):
        yield (), reading
        return
    assert not isinstance(reading, Durations | DurationsBy)
    known = dict.fromkeys(map(_as_labels, family.always), 0.0)
    for labels, value in reading.items():
        known[_as_labels(labels)] = value
    yield from sorted(known.items())


def _as_labels(labels: str | tuple[str, ...]) -> tuple[str, ...]:
    return (labels,) if isinstance(labels, str) else labels


def _of_durations(family: Family, reading: Reading) -> Iterator[Sample]:
    if isinstance(reading, Durations):
        yield from _histogram(family.name, {}, reading)
        return
    assert isinstance(reading, DurationsBy)
    (label,) = family.labels
    for value, durations in sorted(reading.items()):
        yield from _histogram(family.name, {label: value}, durations)


def _histogram(name: str, labels: dict[str, str], durations: Durations) -> Iterator[Sample]:
    count = 0.0
    for bound, count in durations.cumulative():
        yield Sample(f"{name}_bucket", {**labels, "le": bound}, count)
    yield Sample(f"{name}_count", labels, count)
    yield Sample(f"{name}_sum", labels, durations.seconds)
