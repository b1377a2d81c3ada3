"""How long the proxy's own certificates last, as Prometheus reads it."""

from collections.abc import Iterable
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluicegate.config.model import Config
from sluicegate.proxy.network.certificates import expiries_of


class CertificateCollector(Collector):
    """Reads the files at each scrape: certificates are renewed on disk. Without TLS there is nothing to show."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def collect(self) -> Iterable[Metric]:
        """One family, if there are certificates."""
        found = expiries_of(self._config)
        if not found:
            return
        family = GaugeMetricFamily(
            "sluicegate_certificate_days_left", "Days until a certificate expires; negative: since.", labels=["key"]
        )
        now = datetime.now(UTC)
        for expiry in found:
            family.add_metric([expiry.key], round(expiry.days_left(now), 3))
        yield family
