"""What a process shows of itself, to Prometheus and to OpenTelemetry alike."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from prometheus_client.core import Metric

from sluicegate.config.model import Config
from sluicegate.proxy.network.tls.certificates import expiries_of
from sluicegate.proxy.reporting.metrics.collection import metrics_of, shown
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.reporting.metrics.families.process import CERTIFICATE_DAYS_LEFT, CERTIFICATE_EXPIRES

_DAY_SECONDS = 86_400


def certificate_metrics(config: Config) -> Iterator[Metric]:
    """Two, if there are certificates. Reads their files each time: they are renewed on disk."""
    now = datetime.now(UTC)
    days_left = {expiry.key: round(expiry.days_left(now), 3) for expiry in expiries_of(config)}
    if days_left:
        yield shown(CERTIFICATE_DAYS_LEFT, days_left)
        yield shown(
            CERTIFICATE_EXPIRES,
            {key: round(now.timestamp() + days * _DAY_SECONDS) for key, days in days_left.items()},
        )


def all_metrics(config: Config, snapshot: Callable[[], Snapshot]) -> Iterator[Metric]:
    """As it is now."""
    yield from metrics_of(snapshot())
    yield from certificate_metrics(config)
