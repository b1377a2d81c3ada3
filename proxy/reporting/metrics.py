"""How Prometheus reads what the proxy counts: families are made when somebody asks."""

from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.reporting.tally import Snapshot


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
            ("exempt_batches", "Partitions' batches of exempt clients.", tally.exempt_partitions),
            ("violations_dropped", "Violation events lost because their queue was full.", tally.violations_dropped),
            ("violations_failed", "Violation events lost because they could not be written.", tally.violations_failed),
            (
                "violations_topic_dropped",
                "Violation events that violations.topic lacks because their queue was full.",
                tally.violations_topic_dropped,
            ),
            (
                "violations_topic_failed",
                "Violation events that the cluster did not take into violations.topic.",
                tally.violations_topic_failed,
            ),
            ("log_lines_dropped", "Log lines lost: standard error took none.", tally.log_lines_dropped),
            ("judgements_abandoned", "Judgements given up: their client had left.", tally.judgements_abandoned),
            ("config_reloads", "Times that the configuration was read again and taken.", tally.config_reloads),
            (
                "config_reload_failures",
                "Times that the configuration was read again and not taken.",
                tally.config_reload_failures,
            ),
            (
                "acks_0_closed",
                "Connections closed after a refusal that acks=0 leaves no answer for.",
                tally.closed_acks_0,
            ),
        ):
            yield CounterMetricFamily(f"sluicegate_{name}", text, value=value)
        for name, text, labels, pairs in (
            ("refused_batches", "Batches refused.", ["topic", "error"], tally.refused),
            ("observed_batches", "Batches forwarded that mode reject refuses.", ["topic", "error"], tally.observed),
            (
                "quarantined_batches",
                "Batches refused whose bad records were kept in another topic.",
                ["topic", "error"],
                tally.quarantined,
            ),
            ("rehearsed_batches", "Batches a bound on trial would refuse.", ["topic", "bound"], tally.rehearsed),
            ("rehearsed_records", "Records a bound on trial finds bad.", ["topic", "bound"], tally.rehearsed_records),
            ("rule_batches", "Batches that broke a rule.", ["rule", "mode"], tally.rule_batches),
            ("rule_records", "Records that broke a rule.", ["rule", "mode"], tally.rule_records),
            (
                "rehearsed_client_batches",
                "Batches a bound on trial would refuse, by client id.",
                ["client_id", "bound"],
                tally.rehearsed_clients,
            ),
        ):
            yield _by_two(labels, f"sluicegate_{name}", text, pairs)
        for name, text, label, counts in (
            ("fixed_batches", "Batches forwarded with other times.", "topic", tally.fixed),
            ("fixed_records", "Records given other times.", "topic", tally.fixed_records),
            ("observed_records", "Records found bad in batches that were forwarded.", "topic", tally.observed_records),
            ("quarantined_records", "Bad records kept in another topic.", "topic", tally.quarantined_records),
            (
                "quarantine_failures",
                "Batches whose bad records could not be kept: their clients were told to send them again.",
                "topic",
                tally.quarantine_failures,
            ),
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


def _by_two(labels: list[str], name: str, text: str, counts: Counter[tuple[str, str]]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in sorted(counts.items()):
        family.add_metric(values, count)
    return family


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
