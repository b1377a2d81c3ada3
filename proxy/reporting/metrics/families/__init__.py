"""Every metric that is shown, declared once: what a scrape shows and docs/metrics.md says both come from here."""

from sluicegate.proxy.reporting.metrics.families.broker_names import BROKER_NAMES
from sluicegate.proxy.reporting.metrics.families.connections import CONNECTIONS
from sluicegate.proxy.reporting.metrics.families.flow import FLOW, TIME
from sluicegate.proxy.reporting.metrics.families.process import PROCESS
from sluicegate.proxy.reporting.metrics.families.rejections import REJECTIONS
from sluicegate.proxy.reporting.metrics.families.upstream import UPSTREAM
from sluicegate.proxy.reporting.metrics.family import Family

ROWS: tuple[tuple[str, str, tuple[Family, ...]], ...] = (
    ("What flows", "What becomes of what producers send.", FLOW),
    ("What is rejected, and whose it is", "What is wrong, of which topics and clients, and what was done.", REJECTIONS),
    (
        "A broker's own names",
        "As a JMX exporter shows a broker's meters (KIP-467), so that alerts that exist go on working. Brokers behind "
        "the proxy no longer see these batches: what they would have counted is counted here. A proxy is a scrape "
        "target of its own beside the brokers, so sums over both have it all. As at a broker only failed requests are "
        "told by topic; of all others `sluicegate_violations_total` has topic, rule and client.",
        BROKER_NAMES,
    ),
    ("Time", "How long requests take, in the proxy and behind it.", TIME),
    ("Connections", "Connections, why they are paused, and the limits they reach.", CONNECTIONS),
    ("Upstream", "The brokers behind the proxy.", UPSTREAM),
    ("The process", "What runs, by which configuration, and how it is.", PROCESS),
)
"""Title, what is in it, and the metrics, as docs/metrics.md and the dashboard have their rows."""

FAMILIES: tuple[Family, ...] = tuple(family for _, _, families in ROWS for family in families)
BATCH_COUNTERS: tuple[Family, ...] = tuple(family for family in FAMILIES if family.counted is not None)
"""Those that count what happens to batches."""
