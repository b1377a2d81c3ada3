"""Declares the metrics of all proxies with the same presence topic, which each of them serves at `/metrics/fleet`."""

from typing import Final

from sluicegate.proxy.reporting.metrics.family import Family, Kind, gauge

READABLE: Final = gauge(
    "sluicegate_presence_readable",
    "1 if this proxy can read the presence topic, else 0; then the other metrics of this page are absent.",
    "0: `sluicegate fleet --admin` says why and what to do.",
    None,
)
PROXIES: Final = gauge(
    "sluicegate_presence_proxies",
    "Proxies that have announced themselves in the last ten minutes, by state; `stale`: not in the last 15 s.",
    "`stale` above 0: a proxy has ended, hangs, or cannot write to the presence topic.",
    None,
    ("state",),
    ("serving", "needs attention", "not serving", "stale"),
)
FINDINGS: Final = gauge(
    "sluicegate_presence_findings",
    "Findings by kind: different versions or policies, a clock that is off, a name of two running proxies.",
    "Above 0: `sluicegate fleet --admin` names the proxies.",
    None,
    ("finding",),
    ("versions_differ", "policies_differ", "clock_off", "name_used_twice"),
)
AGE: Final = gauge(
    "sluicegate_presence_age_seconds",
    "Time since the newest announcement of the proxy, by the broker's clock.",
    "More than 15 s: its other figures are stale.",
    None,
    ("proxy",),
)
SERVING: Final = gauge(
    "sluicegate_presence_serving",
    "1 if the proxy is not stale and serves clients (`serving` or `needs attention`), else 0.",
    "0: clients of this proxy cannot be served, or its state is unknown.",
    None,
    ("proxy",),
)
CLOCK: Final = gauge(
    "sluicegate_presence_clock_offset_seconds",
    "How far the proxy's clock is ahead of the broker's; absent if the broker does not set the topic's times.",
    "More than 5 s: correct the clock; timestamps are validated by it.",
    None,
    ("proxy",),
)
INFO: Final = gauge(
    "sluicegate_presence_info",
    "1; the labels have the version of the proxy and the digest of its policies.",
    "Different values during a rollout are expected.",
    None,
    ("proxy", "version", "policies"),
)
CONNECTIONS: Final = gauge(
    "sluicegate_presence_connections", "Open connections of clients.", "To compare proxies.", None, ("proxy",)
)


def _announced(name: str, text: str) -> Family:
    return Family(f"sluicegate_presence_{name}", Kind.COUNTER, text, "To compare proxies.", None, ("proxy",))


COUNTERS: Final = {
    "produce_requests": _announced("produce_requests", "Produce requests since the proxy's start."),
    "accepted_records": _announced("accepted_records", "Accepted records since the proxy's start."),
    "violations": _announced("violations", "Batches with violations since the proxy's start."),
}
"""The counters that each proxy announces, by their names in the announcement."""

PRESENCE: tuple[Family, ...] = (
    READABLE,
    PROXIES,
    FINDINGS,
    AGE,
    SERVING,
    CLOCK,
    INFO,
    CONNECTIONS,
    *COUNTERS.values(),
)
