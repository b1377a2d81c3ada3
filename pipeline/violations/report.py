"""Violations as a table and as a page."""

from collections import defaultdict
from datetime import datetime
from typing import Any

from rich.table import Table as ConsoleTable
from rich.text import Text

from sluicegate.pipeline.report.longest import cut
from sluicegate.pipeline.report.names import printable
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.report.plots import bars
from sluicegate.pipeline.results import REPORT, Results

_HEADS = (
    "client",
    "topic",
    "reason",
    "refused batches",
    "bad records",
    "late events",
    "first window (UTC)",
    "latest (UTC)",
)
_MOST_BARS = 15


def _rows(summary: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            _named(row["client_id"]),
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


def _named(client_id: str | None) -> str:
    return printable(client_id or "(no client id)")


def _moment(text: str) -> str:
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S")


def console_table(summary: dict[str, Any]) -> ConsoleTable:
    """What the command prints."""
    table = ConsoleTable(title=f"Offenders ({summary['events']:,} events, {summary['bad_lines']:,} lines are none)")
    for head in _HEADS:
        table.add_column(head)
    shown, rest = cut(_rows(summary), "summary.json")
    for row in shown:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else cell) for cell in row))  # brackets are no markup
    table.caption = rest or None
    return table


def write_report(results: Results, summary: dict[str, Any], now_ms: int) -> None:
    """Offenders with a plot of the worst clients."""
    clients: dict[str, int] = defaultdict(int)
    for row in summary["offenders"]:
        clients[_named(row["client_id"])] += row["events"]
    worst = sorted(clients.items(), key=lambda item: -item[1])[:_MOST_BARS]
    plots = [bars([n for n, _ in worst], {"batches": [c for _, c in worst]}, "Refused batches by client", "batches")]
    shown, rest = cut(_rows(summary), "summary.json")
    sections = [Section("Offenders", "", plots if worst else [], [Table(rest, _HEADS, shown)])]
    lead = f"{summary['events']:,} events in {summary['windows']:,} windows, {summary['late_events']:,} of them late."
    results.write_text(REPORT, page("Violations", lead, sections, now_ms))
