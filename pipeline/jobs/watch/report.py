"""Presents a watch as a report: the topics' contents, and what producers began or changed, newest first."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.jobs.watch.findings import description, finding_line, hour_of, producer_name
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.plots import bar_plot
from sluicegate.pipeline.report.wording import (
    WORST,
    Conclusion,
    count_text,
    counts_in_words,
    cut_rows,
    printable,
    share_text,
)
from sluicegate.pipeline.runs.results import REPORT, Results


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Return the conclusion for all batches."""
    topics = summary["topics"].values()
    records = sum(topic["records"] for topic in topics)
    damage = sum_over_topics(topic["damage"] for topic in topics)
    at_most = sum_over_topics(topic.get("damage_at_most", {}) for topic in topics)
    ranges = {name: most for name, most in at_most.items() if most > damage[name]}
    violations = sum_over_topics(topic["violations"] for topic in topics)
    parts = (
        [f"{share_text(damage.total(), records)} have an invalid timestamp ({counts_in_words(damage)})"]
        if damage
        else []
    )
    parts += [f"{violations.total():,} break a policy ({printable(counts_in_words(violations))})"] if violations else []
    broken = sum(topic.get("unreadable", 0) for topic in topics)
    unread = f" Batches that cannot be read: {broken:,}; the table watch_unreadable names them." if broken else ""
    none = "none has a certainly invalid timestamp" if ranges else "none has an invalid timestamp"
    found = f"Of {count_text(records, 'record')}, " + (" and ".join(parts) if parts else none) + f".{unread}"
    if ranges:
        counts = counts_in_words({name: damage[name] for name in ranges}, ranges)
        found += f" Not known exactly, because brokers do not store when records were appended: {counts}."
    if not summary["findings"]:
        return Conclusion(found, "Nothing: no producer is new or has changed.")
    return Conclusion(found, f"Look at the newest finding: {printable(finding_line(summary['findings'][-1]))}.")


def sum_over_topics(counts: Any) -> Counter[str]:
    """Return counts by name, over topics."""
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return found


_HEADS = (
    "topic",
    "records",
    "certainly invalid",
    "kinds",
    "violations",
    "deleted before reading",
    "unreadable batches",
    "owner",
)
_FOUND = ("hour", "topic", "producer", "finding", "records")


def write_report(results: Results, summary: Mapping[str, Any], now_ms: int) -> None:
    """Write the report. Topics with the most invalid timestamps come first."""
    topics = sorted(summary["topics"].items(), key=lambda item: (-sum(item[1]["damage"].values()), item[0]))
    rows = [
        (
            printable(name),
            topic["records"],
            sum(topic["damage"].values()),
            counts_in_words(_counts_by_kind(topic), topic.get("damage_at_most", {})),
            printable(counts_in_words(topic["violations"])),
            topic.get("missing", 0),
            topic.get("unreadable", 0),
            printable(topic.get("owner", "none")),
        )
        for name, topic in topics
    ]
    shown, rest = cut_rows(rows, "summary.json")
    sections = [
        ReportSection("Topics", plots=_plots(topics), tables=[Table(rest, _HEADS, shown)]),
        ReportSection("Latest findings", tables=[_findings(summary)]),
    ]
    lead = f"As of batch {summary['batches']:,}; the table watch_hours contains the counts by topic and hour."
    results.write_text(REPORT, page("Watch", conclusion(summary), lead, sections, now_ms))


def _findings(summary: Mapping[str, Any]) -> Table:
    newest = list(reversed(summary["findings"]))
    rows = [
        (hour_of(row), printable(row["topic"]), producer_name(row), printable(description(row)), row["records"])
        for row in newest[:WORST]
    ]
    of = f"The last {WORST}; all are in the table watch_findings." if len(newest) > WORST else ""
    return Table(of, _FOUND, rows)


def _counts_by_kind(topic: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts by kind of invalid timestamp. A kind of which all occurrences are uncertain has the count 0."""
    counts: dict[str, int] = dict.fromkeys(topic.get("damage_at_most", {}), 0)
    counts |= topic["damage"]
    return counts


def _plots(topics: list[tuple[str, Any]]) -> list[Any]:
    invalid = [(name, topic["damage"]) for name, topic in topics if topic["damage"]]
    if not invalid:
        return []
    worst = invalid[:WORST]
    of = f", the {WORST} with most of {len(invalid):,}" if len(invalid) > WORST else ""
    kinds = sum_over_topics(damage for _, damage in worst)
    series = {kind: [damage.get(kind, 0) for _, damage in worst] for kind in kinds}
    more = (
        most > topic["damage"].get(name, 0)
        for _, topic in topics
        for name, most in topic.get("damage_at_most", {}).items()
    )
    title = f"Records with invalid timestamps by topic{', at least' if any(more) else ''}{of}"
    return [bar_plot([printable(name) for name, _ in worst], series, title, "records")]
