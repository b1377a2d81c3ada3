"""How long the proxy's own certificates last, as Prometheus reads it."""

from collections.abc import Iterable
from datetime import UTC, datetime

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from sluicegate.config.model import Config
from sluicegate.proxy.network.certificates import expiries_of
from sluicegate.proxy.reporting.families.process import CERTIFICATE_DAYS_LEFT, CERTIFICATE_EXPIRES
from sluicegate.proxy.reporting.metrics import shown

_DAY_SECONDS = 86_400


class CertificateCollector(Collector):
    """Reads the files at each scrape: certificates are renewed on disk. Without TLS there is nothing to show."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def collect(self) -> Iterable[Metric]:
        """Two families, if there are certificates."""
        now = datetime.now(UTC)
        days_left = {expiry.key: round(expiry.days_left(now), 3) for expiry in expiries_of(self._config)}
        if days_left:
            yield shown(CERTIFICATE_DAYS_LEFT, days_left)
            yield shown(
                CERTIFICATE_EXPIRES,
                {key: round(now.timestamp() + days * _DAY_SECONDS) for key, days in days_left.items()},
            )
