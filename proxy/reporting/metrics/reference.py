"""The page of every metric: what it is, and when to look at it.

`python -m sluicegate.proxy.reporting.metrics.reference > docs/metrics.md` writes it.
"""

import sys

from sluicegate.proxy.reporting.metrics.families import ROWS
from sluicegate.proxy.reporting.metrics.family import Family
from sluicegate.proxy.reporting.metrics.histogram import BOUNDS

_HEAD = f"""# Metrics

Every metric that `/metrics` shows (`admin.listen`), as `proxy/reporting/metrics/families/` declares them, never
written by hand: `python -m sluicegate.proxy.reporting.metrics.reference > docs/metrics.md`.

- `deploy/prometheus/` has a scrape configuration and alerts; [runbook.md](runbook.md) says what to do about each.
  `deploy/grafana/` has a dashboard.
- Of several workers all is summed: counters, histograms and what there is now.
- What clients name themselves is bounded. Topics have series of their own where the cluster or the configuration knows
  them, 500 at most; of client ids a hundred. All others count as `other`, clients without an id as `none`. When no
  series is left, a client (its principal, or its address) with fewer names gets a series of the client with the most.
  So a client with many names takes no series from others. What the replaced series counted moves to `other`; no sum
  falls.
- Histograms are classic ones, with the same bounds everywhere (seconds): {", ".join(f"{bound:g}" for bound in BOUNDS)}.
  Prometheus can store them as native ones (`convert_classic_histograms_to_nhcb`).
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, words, families in ROWS:
        parts.append(f"## {title}\n\n{words}\n")
        parts.append("| metric | labels | what it is | when to look at it |\n|---|---|---|---|")
        parts += map(_row, families)
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "none"
    text = family.text.replace("|", "\\|")
    return f"| `{family.shown_name}` ({family.kind.value}) | {labels} | {text} | {family.look} |"


if __name__ == "__main__":
    sys.stdout.write(page())
