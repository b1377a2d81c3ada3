"""What a process shows of itself, to Prometheus and to OpenTelemetry alike."""

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric

from sluicegate.config.model import Config
from sluicegate.proxy.admin.certificate_metrics import certificate_metrics
from sluicegate.proxy.reporting.metrics.collection import metrics_of
from sluicegate.proxy.reporting.metrics.counters import Snapshot


def all_metrics(config: Config, snapshot: Callable[[], Snapshot]) -> Iterator[Metric]:
    """As it is now."""
    yield from metrics_of(snapshot())
    yield from certificate_metrics(config)
