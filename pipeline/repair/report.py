"""A repair's before and after, as a table and as a page."""

from datetime import UTC, datetime
from typing import Any

from rich.table import Table as ConsoleTable

from pipeline.report.page import Section, Table, page
from pipeline.report.plots import bars
from pipeline.results import REPORT, Results

_HEADS = ("topic", "producer id", "damage", "records", "example at", "before", "after", "corrected times from", "to")
_NOT_SOLVED = "left as it is: nothing tells what it should be"


def _rows(changes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            row["topic"],
            str(row["producer_id"]),
            row["damage"],
            row["records"],
            f"{row['example_at']['partition']}@{row['example_at']['offset']}",
            str(row["example_before"]),
            str(row["example_after"]),
            _moment(row["earliest_after"]) if row["solved"] else _NOT_SOLVED,
            _moment(row["latest_after"]) if row["solved"] else "",
        )
        for row in changes
    ]


def console_table(changes: list[dict[str, Any]], applied: bool) -> ConsoleTable:
    """What the command prints."""
    table = ConsoleTable(title="Repaired" if applied else "What --apply would change (a dry run: nothing is written)")
    for head in _HEADS:
        table.add_column(head, justify="right" if head == "records" else "left")
    for row in _rows(changes):
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else cell for cell in row))
    return table


def write_report(results: Results, summary: dict[str, Any], now_ms: int) -> None:
    """One section a topic."""
    sections = []
    for source, topic in summary["topics"].items():
        changes = [row for row in summary["changes"] if row["topic"] == source]
        table = Table(f"{source} to {topic['to']}", _HEADS, _rows(changes))
        producers = sorted({str(row["producer_id"]) for row in changes})
        damages = sorted({row["damage"] for row in changes})
        series = {
            damage: [
                sum(r["records"] for r in changes if str(r["producer_id"]) == producer and r["damage"] == damage)
                for producer in producers
            ]
            for damage in damages
        }
        plots = [bars([f"producer {p}" for p in producers], series, "Damaged records", "records")] if changes else []
        text = "" if changes else "Nothing is damaged: the clean topic is a copy."
        sections.append(Section(source, text, plots, [table]))
    lead = "Written." if summary["applied"] else "A dry run: nothing was written."
    results.write_text(REPORT, page("Repair", lead, sections, now_ms))


def _moment(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "no date"
