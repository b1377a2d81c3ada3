"""Creates the responses of /metrics, /metrics/fleet, /livez and /readyz.

OpenTelemetry exports the same metrics.
"""

import gzip
from collections.abc import Callable, Iterator
from functools import partial

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

from sluicegate.config.model import Config
from sluicegate.proxy.network.tls.certificates import all_expiries_of
from sluicegate.proxy.reporting.metrics.collection import (
    CollectMetrics,
    MetricsCollector,
    family_with_values,
    metrics_of,
)
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.reporting.metrics.families.process import CERTIFICATE_EXPIRES
from sluicegate.proxy.status.condition import ServingState
from sluicegate.proxy.status.status import Status, state_of
from sluicegate.proxy.webui.responses import HttpResponse, Slow, text_response


class AdminPages:
    """Finds the response for a request."""

    def __init__(self, metrics: CollectMetrics, status: Status, fleet_metrics: CollectMetrics | None = None) -> None:
        """`fleet_metrics` returns the metrics of all proxies in the cluster; it is None if they are not known."""
        self._collector = MetricsCollector(metrics)
        self._fleet_collector = None if fleet_metrics is None else MetricsCollector(fleet_metrics)
        self._status = status

    def find(self, method: str, path: str, headers: dict[str, str]) -> HttpResponse | Slow | None:
        """Return the response, or the function that creates it, or None for other paths.

        Header names are in lower case.
        """
        if method == "POST" and path.startswith("/api/"):
            return None
        if method not in ("GET", "HEAD"):
            return text_response(405, "this path allows only GET and HEAD", ("Allow", "GET, HEAD"))
        match path.partition("?")[0]:
            case "/metrics":
                return partial(_metrics, self._collector, headers)
            case "/metrics/fleet":
                if self._fleet_collector is None:
                    return text_response(404, "the metrics of all proxies require state.topic in the configuration")
                return partial(_metrics, self._fleet_collector, headers)
            case "/livez":
                return _liveness(self._status)
            case "/readyz":
                return _readiness(self._status)
        return None


def _metrics(collector: Collector, asked: dict[str, str]) -> HttpResponse:
    encode, content_type = encoder_for(asked.get("accept", ""))
    body, headers = encode(collector), (("Content-Type", content_type),)
    if gzip_accepted(asked.get("accept-encoding", "")):
        return HttpResponse(200, gzip.compress(body, 1), (*headers, ("Content-Encoding", "gzip")))
    return HttpResponse(200, body, headers)


def encoder_for(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """Return the encoder that an Accept header selects, and its Content-Type.

    The format is Prometheus's text format or OpenMetrics.
    """
    try:
        return choose_encoder(accept)
    except TypeError:  # prometheus_client fails if a version is not a number
        return choose_encoder("")


def _liveness(status: Status) -> HttpResponse:
    problem = status.not_live()
    return text_response(200, "ok") if problem is None else text_response(503, problem)


def _readiness(status: Status) -> HttpResponse:
    """Return the proxy's state and a line for each condition. The status is 503 only if the proxy
    cannot serve clients.
    """
    active = status.active()
    state = state_of(active)
    return text_response(503 if state is ServingState.NOT_SERVING else 200, "\n".join([state.value, *map(str, active)]))


def certificate_metrics(config: Config) -> Iterator[Metric]:
    """Yield each certificate's expiry time. The files are read again each time, because they are renewed on disk."""
    expiries = {(each.key, each.subject): round(each.not_after.timestamp()) for each in all_expiries_of(config)}
    if expiries:
        yield family_with_values(CERTIFICATE_EXPIRES, expiries)


def all_metrics(config: Config, snapshot: Callable[[], Snapshot]) -> Iterator[Metric]:
    """Yield all current metrics."""
    yield from metrics_of(snapshot())
    yield from certificate_metrics(config)
