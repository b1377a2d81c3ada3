"""What the proxy counts, and how Prometheus reads it.

Counting is adding to plain integers (the hot path does it); Prometheus families are made when somebody asks. Which
topics have a label of their own is said in proxy/topic_labels.py; all others count under `other`.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluicegate.proxy.build_info import VERSION

OTHER = "other"
_NOT_ADDED = frozenset({"ready"})


@dataclass(slots=True)
class Tally:
    """Counters of one proxy since its start; `connections_refused` and `cut_off` by the limit (its key)."""

    connections_opened: int = 0
    connections_closed: int = 0
    bad_clients: int = 0
    upstream_failures: int = 0
    own_logins_refused: int = 0
    produce_requests: int = 0
    accepted_partitions: int = 0
    accepted_records: int = 0
    unchecked_partitions: int = 0
    violations_dropped: int = 0
    violations_failed: int = 0
    log_lines_dropped: int = 0
    judgements_abandoned: int = 0
    closed_acks_0: int = 0
    ready: bool = False
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused_records: Counter[str] = field(default_factory=Counter)
    far_ahead: Counter[str] = field(default_factory=Counter)
    connections_refused: Counter[str] = field(default_factory=Counter)
    cut_off: Counter[str] = field(default_factory=Counter)
    unsupported_versions: Counter[str] = field(default_factory=Counter)


def total_of(tallies: Iterable[Tally]) -> Tally:
    """The counters of several processes as one's; ready when any is."""
    total = Tally()
    for tally in tallies:
        for counter in fields(Tally):
            if counter.name not in _NOT_ADDED:
                setattr(total, counter.name, getattr(total, counter.name) + getattr(tally, counter.name))
        total.ready = total.ready or tally.ready
    return total


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is shown at one moment: counters, requests under way, and worker processes that ended and were replaced."""

    tally: Tally
    in_flight: int
    workers: int = 1
    worker_restarts: int = 0


class TallyCollector(Collector):
    """Shows a Tally as Prometheus families."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        """Every family with its current values."""
        snapshot = self._snapshot()
        tally = snapshot.tally
        info = GaugeMetricFamily("sluicegate_info", "The running version.", labels=["version"])
        info.add_metric([VERSION], 1)
        yield info
        open_now = tally.connections_opened - tally.connections_closed
        yield GaugeMetricFamily("sluicegate_open_connections", "Client connections open now.", value=open_now)
        yield GaugeMetricFamily("sluicegate_in_flight", "Requests without their answer yet.", value=snapshot.in_flight)
        yield GaugeMetricFamily("sluicegate_ready", "1 when an upstream broker answers.", value=int(tally.ready))
        yield GaugeMetricFamily("sluicegate_workers", "Processes that take connections.", value=snapshot.workers)
        yield CounterMetricFamily(
            "sluicegate_worker_restarts", "Workers that ended and were started again.", value=snapshot.worker_restarts
        )
        for name, text, value in (
            ("connections", "Client connections accepted.", tally.connections_opened),
            ("bad_clients", "Connections closed because of what the client sent.", tally.bad_clients),
            (
                "upstream_failures",
                "Client connections for which no upstream broker could be reached.",
                tally.upstream_failures,
            ),
            ("own_logins_refused", "Logins with upstream.sasl that a broker refused.", tally.own_logins_refused),
            ("produce_requests", "Produce requests judged.", tally.produce_requests),
            ("accepted_batches", "Partitions' batches found good.", tally.accepted_partitions),
            ("accepted_records", "Records in batches found good.", tally.accepted_records),
            ("unchecked_batches", "Partitions' batches of topics with checks: none.", tally.unchecked_partitions),
            ("violations_dropped", "Violation events lost because their queue was full.", tally.violations_dropped),
            ("violations_failed", "Violation events lost because they could not be written.", tally.violations_failed),
            ("log_lines_dropped", "Log lines lost: standard error took none.", tally.log_lines_dropped),
            ("judgements_abandoned", "Judgements given up: their client had left.", tally.judgements_abandoned),
            (
                "acks_0_closed",
                "Connections closed after a refusal that acks=0 leaves no answer for.",
                tally.closed_acks_0,
            ),
        ):
            yield CounterMetricFamily(f"sluicegate_{name}", text, value=value)
        refused = CounterMetricFamily("sluicegate_refused_batches", "Batches refused.", labels=["topic", "error"])
        for (topic, error), count in sorted(tally.refused.items()):
            refused.add_metric([topic, error], count)
        yield refused
        for name, text, label, counts in (
            ("refused_records", "Records found bad.", "topic", tally.refused_records),
            ("far_ahead_batches", "Good batches more than an hour ahead.", "topic", tally.far_ahead),
            ("connections_refused", "Connections not taken because of a limit.", "limit", tally.connections_refused),
            ("cut_off", "Connections ended because of a limit or a deadline.", "limit", tally.cut_off),
            (
                "unsupported_versions",
                "Requests of an API or version that was not offered; the connection was closed.",
                "api",
                tally.unsupported_versions,
            ),
        ):
            yield _by(label, f"sluicegate_{name}", text, counts)


def _by(label: str, name: str, text: str, counts: Counter[str]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family


def registry_of(snapshot: Callable[[], Snapshot]) -> CollectorRegistry:
    """A registry that shows what `snapshot` says at each scrape, and nothing else."""
    registry = CollectorRegistry()
    registry.register(TallyCollector(snapshot))
    return registry
