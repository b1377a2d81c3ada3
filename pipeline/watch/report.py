"""A watch as a page: what topics hold, and what producers have begun or changed, the newest first."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.answer import in_words
from sluicegate.pipeline.report.longest import WORST, cut
from sluicegate.pipeline.report.names import printable
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.report.plots import bars
from sluicegate.pipeline.results import REPORT, Results
from sluicegate.pipeline.watch.answer import answer, summed
from sluicegate.pipeline.watch.findings import hour_of, what, who

_HEADS = ("topic", "records", "damaged", "damage", "violations", "gone before they were read", "unreadable batches")
_FOUND = ("hour", "topic", "producer", "finding", "records")


def write_report(results: Results, summary: Mapping[str, Any], now_ms: int) -> None:
    """Topics with the most damage first."""
    topics = sorted(summary["topics"].items(), key=lambda item: (-sum(item[1]["damage"].values()), item[0]))
    rows = [
        (
            printable(name),
            topic["records"],
            sum(topic["damage"].values()),
            in_words(topic["damage"]),
            printable(in_words(topic["violations"])),
            topic["gone"],
            topic.get("unreadable", 0),
        )
        for name, topic in topics
    ]
    shown, rest = cut(rows, "summary.json")
    sections = [
        Section("Topics", plots=_plots(topics), tables=[Table(rest, _HEADS, shown)]),
        Section("What began or changed last", tables=[_findings(summary)]),
    ]
    lead = f"As of batch {summary['batches']:,}; the table watch_hours has it by topic and hour."
    results.write_text(REPORT, page("Watch", answer(summary), lead, sections, now_ms))


def _findings(summary: Mapping[str, Any]) -> Table:
    newest = list(reversed(summary["findings"]))
    rows = [
        (hour_of(row), printable(row["topic"]), who(row), printable(what(row)), row["records"])
        for row in newest[:WORST]
    ]
    of = f"The last {WORST}; all are in the table watch_findings." if len(newest) > WORST else ""
    return Table(of, _FOUND, rows)


def _plots(topics: list[tuple[str, Any]]) -> list[Any]:
    damaged = [(name, topic["damage"]) for name, topic in topics if topic["damage"]]
    if not damaged:
        return []
    worst = damaged[:WORST]
    of = f", the {WORST} with most of {len(damaged):,}" if len(damaged) > WORST else ""
    kinds = summed(damage for _, damage in worst)
    series = {kind: [damage.get(kind, 0) for _, damage in worst] for kind in kinds}
    return [bars([printable(name) for name, _ in worst], series, f"Damaged records by topic{of}", "records")]
