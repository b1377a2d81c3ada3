"""Presents violations as a report and as a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.plots import bar_plot
from sluicegate.pipeline.report.wording import (
    WORST,
    Conclusion,
    count_text,
    counts_in_words,
    cut_rows,
    moment_and_ms,
    printable,
    share_text,
    shortened,
    worst_and_others,
)
from sluicegate.pipeline.runs.results import REPORT, Results


def client_name(client_id: str | None) -> str:
    """Return a client's name in printable form."""
    return printable(client_id or "(no client id)")


def rejected_by_client(summary: Mapping[str, Any]) -> Counter[str]:
    """Return the number of rejected batches by client."""
    found: Counter[str] = Counter()
    for row in summary["offenders"]:
        found[client_name(row["client_id"])] += row["events"]
    return found


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Return the conclusion for all events that have been processed."""
    by_client = rejected_by_client(summary)
    total = sum(by_client.values())
    if not total:
        return Conclusion("No batch was rejected in these events.", "Nothing.")
    (worst, its), *_ = by_client.most_common(1)
    reasons: Counter[str] = Counter()
    for row in summary["offenders"]:
        if client_name(row["client_id"]) == worst:
            reasons[printable(row["reason"] or "no reason given")] += row["events"]
    found = (
        f"{shortened(worst)} has the most rejections: {share_text(its, total)} of "
        f"{count_text(total, 'rejected batch')[:-1]}es"
        if total != 1
        else f"{shortened(worst)} sent the only rejected batch"
    )
    return Conclusion(
        f"{found} ({counts_in_words(dict(reasons))}).",
        f"Start with that client; its rows show the topics and times. "
        f"The events name {count_text(len(by_client), 'client')}.",
    )


_HEADS = (
    "client",
    "topic",
    "reason",
    "rejected batches",
    "bad records",
    "late events",
    "first window",
    "latest",
)


def _rows(summary: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            client_name(row["client_id"]),
            printable(row["topic"] or "(unknown topic)"),
            printable(row["reason"] or ""),
            row["events"],
            row["bad_records"],
            row["late_events"],
            _moment(row["first_window"]),
            _moment(row["latest"]),
        )
        for row in summary["offenders"]
    ]


def _moment(text: str) -> str:
    return moment_and_ms(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000))


def console_table(summary: dict[str, Any]) -> ConsoleTable:
    """Return the table that the command prints."""
    shown, rest = cut_rows(_rows(summary), "summary.json")
    title = f"Offenders ({summary['events']:,} events, {summary['bad_lines']:,} invalid lines)"
    return ConsoleTable(title, _HEADS, shown, rest)


def write_report(results: Results, summary: dict[str, Any], now_ms: int) -> None:
    """Write the report with a plot of the clients with the most violations."""
    clients = rejected_by_client(summary)
    worst = clients.most_common(WORST)
    of = f", the {WORST} with most of {len(clients):,}" if len(clients) > WORST else ""
    series = {"batches": [count for _, count in worst]}
    plots = (
        [bar_plot([name for name, _ in worst], series, f"Rejected batches by client{of}", "batches")] if worst else []
    )
    shown, others = worst_and_others(summary["offenders"])
    rows = _rows({"offenders": shown})
    caption = "By client, topic and reason"
    if others:
        rows.append(_in_sum(others))
        caption += f": the {len(shown)} with most, and the sum of the others; all are in summary.json"
    sections = [ReportSection("Offenders", plots=plots, tables=[Table(caption, _HEADS, rows)])]
    lead = f"{summary['events']:,} events in {summary['windows']:,} windows, {summary['late_events']:,} of them late."
    results.write_text(REPORT, page("Violations", conclusion(summary), lead, sections, now_ms))


def _in_sum(others: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    first, last = min(row["first_window"] for row in others), max(row["latest"] for row in others)
    sums = (sum(row[name] for row in others) for name in ("events", "bad_records", "late_events"))
    return f"{len(others):,} others", "", "", *sums, _moment(first), _moment(last)
