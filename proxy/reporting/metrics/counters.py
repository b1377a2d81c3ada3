"""The proxy's counters, gauges and histograms.

Counters are plain integers, because the hot path increments them. proxy/reporting/metrics/topic_labels.py decides which
topics have their own label. All other topics are counted as `other`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate

from sluicegate.protocol.api import APIS
from sluicegate.proxy.reporting.metrics.batch_events import BatchCounts

BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the histogram buckets, in seconds. The last bucket is unbounded."""


class Durations:
    """A histogram of durations. `seconds` is their sum."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float, stands_for: int = 1) -> None:
        """Count a duration that represents `stands_for` requests."""
        self.counts[bisect_left(BOUNDS, seconds)] += stands_for
        self.seconds += seconds * stands_for

    def __add__(self, other: "Durations") -> "Durations":
        total = Durations()
        total.counts = [one + another for one, another in zip(self.counts, other.counts, strict=True)]
        total.seconds = self.seconds + other.seconds
        return total

    def copied(self) -> "Durations":
        """Return a copy. Thread-safe."""
        return self + Durations()

    def cumulative(self) -> Iterator[tuple[str, float]]:
        """Yield pairs of an upper bound and a cumulative count, as Prometheus expects them."""
        bounds = [*(repr(bound) for bound in BOUNDS), "+Inf"]
        return zip(bounds, accumulate(self.counts), strict=True)


class LabelledDurations(dict[str, Durations]):
    """Histograms by a label's value."""

    def add(self, key: str, seconds: float, stands_for: int = 1) -> None:
        """Count a duration with this label value."""
        found = self.get(key)
        if found is None:
            found = self[key] = Durations()
        found.add(seconds, stands_for)

    def __add__(self, other: "LabelledDurations") -> "LabelledDurations":
        total = self.copied()
        for key, durations in list(other.items()):
            total[key] = total.get(key, Durations()) + durations
        return total

    def copied(self) -> "LabelledDurations":
        """Return a copy. Thread-safe."""
        return LabelledDurations({key: durations.copied() for key, durations in list(self.items())})


@dataclass(slots=True)
class Gauges:
    """One process's gauges, sampled about once a second.

    `connections` are counted by stage, `paused` by side and reason, and `upstream` by broker and state.
    `buffered_bytes` and `budget_bytes` are sums by share of the memory budget.
    """

    connections: Counter[str] = field(default_factory=Counter)
    paused: Counter[tuple[str, str]] = field(default_factory=Counter)
    upstream: Counter[tuple[str, str]] = field(default_factory=Counter)
    buffered_bytes: Counter[str] = field(default_factory=Counter)
    budget_bytes: Counter[str] = field(default_factory=Counter)
    resident_bytes: int = 0


def gauges_of_all(several: Iterable[Gauges]) -> Gauges:
    """Return the sum of several processes' gauges."""
    total = Gauges()
    for gauges in several:
        for each in fields(Gauges):
            setattr(total, each.name, getattr(total, each.name) + getattr(gauges, each.name))
    return total


OTHER = "other"
_NOT_ADDED = frozenset({"ready"})


@dataclass(slots=True)
class Counters:
    """One process's counters since its start, which `sluicegate.proxy.reporting.metrics.families` describes.

    `batch_counts` contains the counts of every metric that is declared with `batch_counter`.
    """

    connections_opened: int = 0
    connections_closed: int = 0
    protocol_errors: int = 0
    upstream_failures: int = 0
    upstream_logins_rejected: int = 0
    produce_requests: int = 0
    accepted_partitions: int = 0
    accepted_records: int = 0
    unchecked_partitions: int = 0
    exempt_partitions: int = 0
    violation_events_dropped: int = 0
    violation_events_failed: int = 0
    violation_topic_events_dropped: int = 0
    violation_topic_events_failed: int = 0
    otel_metrics_sent: int = 0
    otel_metrics_failed: int = 0
    otel_spans_sent: int = 0
    otel_spans_failed: int = 0
    otel_spans_dropped: int = 0
    log_lines_dropped: int = 0
    validations_abandoned: int = 0
    acks_0_closed: int = 0
    config_reloads: int = 0
    config_reload_failures: int = 0
    rules_process_restarts: int = 0
    ready: bool = False
    batch_counts: BatchCounts = field(default_factory=BatchCounts)
    rehearsed_clients: Counter[tuple[str, str]] = field(default_factory=Counter)
    rule_batches: Counter[tuple[str, str]] = field(default_factory=Counter)
    rule_records: Counter[tuple[str, str]] = field(default_factory=Counter)
    connections_rejected: Counter[str] = field(default_factory=Counter)
    throttled: Counter[str] = field(default_factory=Counter)
    throttled_ms: Counter[str] = field(default_factory=Counter)
    connections_delayed: Counter[str] = field(default_factory=Counter)
    limits_reached: Counter[str] = field(default_factory=Counter)
    closed_by_limit: Counter[str] = field(default_factory=Counter)
    unsupported_versions: Counter[str] = field(default_factory=Counter)
    violations: Counter[tuple[str, str, str, str, str]] = field(default_factory=Counter)
    broker_invalid: Counter[str] = field(default_factory=Counter)
    validated_batches: Counter[str] = field(default_factory=Counter)
    validated_records: int = 0
    validated_bytes: int = 0
    fast_requests: Counter[str] = field(default_factory=Counter)
    slow_requests: Counter[str] = field(default_factory=Counter)
    fallback: Counter[str] = field(default_factory=Counter)
    request_errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    topic_setting_changes: Counter[str] = field(default_factory=Counter)
    broker_errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    client_batches: Counter[tuple[str, str]] = field(default_factory=Counter)
    converted_requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    topic_batches: Counter[tuple[str, str]] = field(default_factory=Counter)
    internal_errors: Counter[str] = field(default_factory=Counter)
    registry_failures: Counter[str] = field(default_factory=Counter)
    encrypted_records: Counter[tuple[str, str]] = field(default_factory=Counter)
    registry_backoffs: Counter[str] = field(default_factory=Counter)
    rule_evaluations: Counter[str] = field(default_factory=Counter)
    proxy_seconds: LabelledDurations = field(default_factory=LabelledDurations)
    upstream_seconds: LabelledDurations = field(default_factory=LabelledDurations)
    loop_delay: Durations = field(default_factory=Durations)
    cpu_seconds: float = 0.0
    cluster_probes: Counter[str] = field(default_factory=Counter)

    def copied(self) -> "Counters":
        """Return a copy for another thread. It shares no counter with the original."""
        copy = replace(self)
        for counter in fields(self):
            value = getattr(self, counter.name)
            if isinstance(value, Counter):
                setattr(copy, counter.name, Counter(value))
            elif isinstance(value, BatchCounts | Durations | LabelledDurations):
                setattr(copy, counter.name, value.copied())
        return copy


def total_of(several: Iterable[Counters]) -> Counters:
    """Return the sum of several processes' counters. The sum is ready if one of them is."""
    total = Counters()
    for counters in several:
        for counter in fields(Counters):
            if counter.name not in _NOT_ADDED:
                setattr(total, counter.name, getattr(total, counter.name) + getattr(counters, counter.name))
        total.ready = total.ready or counters.ready
    return total


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The values for one scrape, from one or several processes.

    `config_generation` is the number of the configuration in force, starting at 1. With several workers it is the
    lowest of their numbers. `clock_offset_seconds` is None if the offset is not measured. `topic_owners` and
    `client_owners` contain the team and contact of each topic and client id that has its own series.
    """

    counters: Counters
    in_flight: int
    workers: int = 1
    worker_restarts: int = 0
    config_generation: int = 1
    gauges: Gauges = field(default_factory=Gauges)
    conditions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    clock_offset_seconds: float | None = None
    topic_owners: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    client_owners: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def total_gauges(snapshots: Iterable[Snapshot]) -> Gauges:
    """Return the sum of several processes' gauges."""
    return gauges_of_all(snapshot.gauges for snapshot in snapshots)


_API_NAMES = {key: api.name for key, api in APIS.items()}


class RequestTimes:
    """Adds the times of requests to `counters`, by API name."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def in_proxy(self, api_key: int, seconds: float, stands_for: int) -> None:
        """Count the seconds from a request's last byte until the proxy forwards it or responds."""
        self._counters.proxy_seconds.add(_API_NAMES[api_key], seconds, stands_for)

    def upstream(self, api_key: int, seconds: float, stands_for: int) -> None:
        """Count the seconds from forwarding a request until the broker's response begins."""
        self._counters.upstream_seconds.add(_API_NAMES[api_key], seconds, stands_for)
