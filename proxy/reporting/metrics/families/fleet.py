"""Declares the metrics that `sluicegate fleet` serves at its own /metrics. A proxy serves its own metrics itself."""

from typing import Final

from sluicegate.proxy.reporting.metrics.family import Family, gauge

REACHABLE: Final = gauge(
    "sluicegate_fleet_proxy_reachable",
    "1 if the proxy responded in the last 10 s, otherwise 0, by its admin address.",
    "If it is 0, `#/proxies` of the fleet's web UI shows the reason.",
    None,
    ("proxy",),
)
LAST_SEEN: Final = gauge(
    "sluicegate_fleet_proxy_last_seen_timestamp_seconds",
    "The time of the proxy's newest state, by the proxy's clock. Absent if the proxy has never responded.",
    "Compare it with `time()` to check the clock of a responding proxy.",
    None,
    ("proxy",),
)
AGE: Final = gauge(
    "sluicegate_fleet_proxy_state_age_seconds",
    "The time since the newest state of the proxy was read. Absent if the proxy has never responded.",
    "If it is above 10 s, the sums of the web UI do not include the proxy.",
    None,
    ("proxy",),
)
READY: Final = gauge(
    "sluicegate_fleet_proxy_serving",
    "1 if the proxy responds and serves clients (`serving` or `needs attention`), otherwise 0.",
    "If it is 0, the proxy does not serve clients, or its state is unknown.",
    None,
    ("proxy",),
)

FLEET: tuple[Family, ...] = (REACHABLE, READY, LAST_SEEN, AGE)
