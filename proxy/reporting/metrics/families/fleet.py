"""Declares the metrics of `sluicegate fleet` at its own /metrics. Scrape a proxy's own metrics from the proxy."""

from typing import Final

from sluicegate.proxy.reporting.metrics.family import Family, gauge

REACHABLE: Final = gauge(
    "sluicegate_fleet_proxy_reachable",
    "1 if the proxy responded in the last 10 s, else 0, by its admin address.",
    "0: `#/proxies` of the fleet's web UI has the reason.",
    None,
    ("proxy",),
)
LAST_SEEN: Final = gauge(
    "sluicegate_fleet_proxy_last_seen_timestamp_seconds",
    "Time of the proxy's newest state, by the clock of the proxy; absent if it has never responded.",
    "Compare it with `time()` for the clock of a proxy that responds.",
    None,
    ("proxy",),
)
AGE: Final = gauge(
    "sluicegate_fleet_proxy_state_age_seconds",
    "Time since the newest state of the proxy was read; absent if it has never responded.",
    "More than 10 s: the proxy is missing in the sums of the web UI.",
    None,
    ("proxy",),
)
READY: Final = gauge(
    "sluicegate_fleet_proxy_serving",
    "1 if the proxy responds and serves clients (`serving` or `needs attention`), else 0.",
    "0: clients of this proxy cannot be served, or its state is unknown.",
    None,
    ("proxy",),
)

FLEET: tuple[Family, ...] = (REACHABLE, READY, LAST_SEEN, AGE)
