"""A comparison as a table and as a page."""

from typing import Any

from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.results import REPORT, Results
from sluicegate.pipeline.verify.answer import answer

_ABOUT = "Each record is compared with the timestamp that it had before a repair, without the three headers of one."


def _rows(summary: dict[str, Any]) -> list[tuple[str, int]]:
    counts = summary["records"]
    return [
        (f"records in {summary['source']}", counts["source"]),
        (f"records in {summary['target']}", counts["target"]),
        *((f"declared repairs: {kind}", count) for kind, count in sorted(summary["repairs"].items())),
        *summary["differences"].items(),
    ]


def console_table(summary: dict[str, Any]) -> ConsoleTable:
    """What the command prints."""
    return ConsoleTable("", ("what", "records"), _rows(summary))


def write_report(results: Results, summary: dict[str, Any], now_ms: int) -> None:
    """With the first differences."""
    sections = [Section("Counts", tables=[Table("", ("what", "records"), _rows(summary))])]
    if summary["samples"]:
        heads = [name.replace("_", " ") for name in summary["samples"][0]]
        rows = [tuple("" if cell is None else cell for cell in row.values()) for row in summary["samples"]]
        sections.append(Section("The first differences", tables=[Table("", heads, rows)]))
    results.write_text(REPORT, page("Verification", answer(summary), _ABOUT, sections, now_ms))
