"""Declares the metrics about all proxies with the same presence topic, which each proxy serves at `/metrics/fleet`."""

from typing import Final

from sluicegate.proxy.reporting.metrics.family import Family, Kind, gauge

READABLE: Final = gauge(
    "sluicegate_presence_readable",
    "1 if this proxy can read the presence topic, otherwise 0; then the other metrics of this page are absent.",
    "If it is 0, `sluicegate fleet --admin` shows the reason and the remedy.",
    None,
)
PROXIES: Final = gauge(
    "sluicegate_presence_proxies",
    "Proxies that announced themselves in the last ten minutes, by state. A proxy is `stale` if it did not in the "
    "last 15 s.",
    "If `stale` is above 0, a proxy has ended, hangs, or cannot write to the presence topic.",
    None,
    ("state",),
    ("serving", "needs attention", "not serving", "stale"),
)
FINDINGS: Final = gauge(
    "sluicegate_presence_findings",
    "Findings by kind: different versions or policies, a wrong clock, or a name that two running proxies have.",
    "If it is above 0, `sluicegate fleet --admin` names the proxies.",
    None,
    ("finding",),
    ("versions_differ", "policies_differ", "clock_off", "name_used_twice"),
)
AGE: Final = gauge(
    "sluicegate_presence_age_seconds",
    "The time since the newest announcement of the proxy, by the broker's clock.",
    "If it is above 15 s, the other figures of the proxy are stale.",
    None,
    ("proxy",),
)
SERVING: Final = gauge(
    "sluicegate_presence_serving",
    "1 if the proxy is not stale and serves clients (`serving` or `needs attention`), otherwise 0.",
    "If it is 0, the proxy does not serve clients, or its state is unknown.",
    None,
    ("proxy",),
)
CLOCK: Final = gauge(
    "sluicegate_presence_clock_offset_seconds",
    "The time by which the proxy's clock is ahead of the broker's. Absent if the broker does not set the topic's "
    "timestamps.",
    "If it exceeds 5 s, correct the clock, because the proxy validates timestamps by it.",
    None,
    ("proxy",),
)
INFO: Final = gauge(
    "sluicegate_presence_info",
    "The value 1, with the version of the proxy and the digest of its policies as labels.",
    "Different versions or digests are normal during a rollout.",
    None,
    ("proxy", "version", "policies"),
)
CONNECTIONS: Final = gauge(
    "sluicegate_presence_connections", "Open connections of clients.", "Compare the proxies.", None, ("proxy",)
)


def _announced(name: str, text: str) -> Family:
    return Family(f"sluicegate_presence_{name}", Kind.COUNTER, text, "Compare the proxies.", None, ("proxy",))


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
