"""The metrics about a fleet itself: which proxies respond, and how old their states are."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from sluicegate.proxy.reporting.metrics.collection import family_with_values
from sluicegate.proxy.reporting.metrics.families.fleet import AGE, LAST_SEEN, REACHABLE, READY
from sluicegate.proxy.status.condition import ServingState
from sluicegate.proxy.watching.fleet import UNREACHABLE, Fleet

_NOT_SERVING = (UNREACHABLE, ServingState.NOT_SERVING.value)


def fleet_metrics(fleet: Fleet) -> Iterator[Metric]:
    """Yield the metrics. Proxies that were not read in the last second are read now."""
    seen = fleet.newest_states()
    yield family_with_values(REACHABLE, {proxy["address"]: float(proxy["state"] != UNREACHABLE) for proxy, _ in seen})
    yield family_with_values(READY, {proxy["address"]: float(proxy["state"] not in _NOT_SERVING) for proxy, _ in seen})
    yield family_with_values(
        LAST_SEEN, {proxy["address"]: proxy["seen_ms"] / 1000 for proxy, _ in seen if proxy["seen_ms"]}
    )
    yield family_with_values(AGE, {proxy["address"]: age for proxy, age in seen if age is not None})
