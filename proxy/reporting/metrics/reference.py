"""Generates the page about all metrics, with their meaning and advice.

`python -m sluicegate.proxy.reporting.metrics.reference > docs/metrics.md` writes the page.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise

from sluicegate.proxy.reporting.metrics.counters import BOUNDS
from sluicegate.proxy.reporting.metrics.families import ROWS
from sluicegate.proxy.reporting.metrics.families.fleet import FLEET
from sluicegate.proxy.reporting.metrics.families.presence import PRESENCE
from sluicegate.proxy.reporting.metrics.family import Family

_HEAD = f"""# Metrics

All metrics of `/metrics` (`admin.listen`). Generated from `proxy/reporting/metrics/families/` by
`python -m sluicegate.proxy.reporting.metrics.reference > docs/metrics.md`.

- `deploy/prometheus/` has a scrape configuration and alerts, [runbook.md](runbook.md) the response to each.
  `deploy/grafana/` has a dashboard.
- A name that ends with `_total` is a counter. Other metrics are gauges, if the first column has no other type. All are
  summed over the workers.
- If a row has two metrics, the second one counts the affected records.
- The number of series is bounded: at most 500 topics, known from the cluster or the configuration, and 100 client ids.
  The others count as `other`, clients without an id as `none`. If no series is left, a client (its principal, or its
  address) with fewer names replaces a series of the client with the most names. The counts of a replaced series move to
  `other`, so sums never fall.
- Histograms are classic, with these bounds in seconds: {", ".join(f"{bound:g}" for bound in BOUNDS)}.
  Prometheus can store them as native histograms (`convert_classic_histograms_to_nhcb`).
"""
_OF_A_FLEET = (
    "Fleet",
    "Metrics of `sluicegate fleet` at its own `/metrics`; scrape the proxies themselves, too.",
    FLEET,
)
_OF_ALL_PROXIES = (
    "All proxies of a cluster",
    "Metrics at `/metrics/fleet` of each proxy with `state.topic` ([shared state](shared-state.md#the-fleet)): what\n"
    "all proxies announce in the presence topic. Scrape one proxy. At most 1,000 proxies have series of their own.",
    PRESENCE,
)


_IN_RECORDS = "Shows how many records are affected."


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for title, words, families in (*ROWS, _OF_A_FLEET, _OF_ALL_PROXIES):
        parts.append(f"## {title}\n\n{words}\n")
        parts.append("| metric | labels | meaning | when to look at it |\n|---|---|---|---|")
        parts += _rows(families)
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _rows(families: Iterable[Family]) -> Iterator[str]:
    """Yield a row for each metric. A metric that counts records shares the row of the metric that
    counts their batches.
    """
    for family, following in pairwise((*families, None)):
        if family is not None and family.advice != _IN_RECORDS:
            counts_records = following is not None and following.advice == _IN_RECORDS
            yield _row(family, following if counts_records else None)


def _row(family: Family, in_records: Family | None) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "none"
    text = family.text.replace("|", "\\|")
    kind = "" if family.kind.value in ("counter", "gauge") else f" ({family.kind.value})"
    names = f"`{family.shown_name}`{kind}" + (f", `{in_records.shown_name}`" if in_records is not None else "")
    return f"| {names} | {labels} | {text} | {family.advice} |"


if __name__ == "__main__":
    sys.stdout.write(page())
