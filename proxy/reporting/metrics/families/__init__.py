"""Declares every metric once. Scrapes and docs/metrics.md are generated from these declarations."""

from sluicegate.proxy.reporting.metrics.families.broker_names import BROKER_NAMES
from sluicegate.proxy.reporting.metrics.families.connections import CONNECTIONS
from sluicegate.proxy.reporting.metrics.families.flow import FLOW, TIME
from sluicegate.proxy.reporting.metrics.families.process import PROCESS
from sluicegate.proxy.reporting.metrics.families.rejections import REJECTIONS
from sluicegate.proxy.reporting.metrics.families.upstream import UPSTREAM
from sluicegate.proxy.reporting.metrics.family import Family

ROWS: tuple[tuple[str, str, tuple[Family, ...]], ...] = (
    ("Traffic", "Validated requests, batches and records, and their outcomes.", FLOW),
    ("Violations", "Violations by topic, client and rule, and what the proxy did.", REJECTIONS),
    (
        "Broker-compatible metrics",
        "The names under which a JMX exporter shows a broker's meters (KIP-467), so that existing alerts keep working. "
        "Brokers behind the proxy no longer see rejected batches, so the proxy counts what they would have counted. "
        "A proxy is a separate scrape target: sum over proxies and brokers for the total. As on a broker, only failed "
        "requests have the label topic; `sluicegate_violations_total` has the labels topic, rule and client for all "
        "violations.",
        BROKER_NAMES,
    ),
    ("Latency", "Time of requests in the proxy and at the brokers.", TIME),
    ("Connections", "Connections, why they are paused, and the limits they reach.", CONNECTIONS),
    ("Upstream", "Brokers, schema registries and the rules process.", UPSTREAM),
    ("Process", "Version, configuration, workers and resources.", PROCESS),
)
"""Each section of docs/metrics.md: its title, its description and its metrics."""

FAMILIES: tuple[Family, ...] = tuple(family for _, _, families in ROWS for family in families)
BATCH_COUNTERS: tuple[Family, ...] = tuple(family for family in FAMILIES if family.counted is not None)
"""The metrics that count batch events."""
