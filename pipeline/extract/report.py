"""An extraction as a table and as a page."""

from typing import Any

from sluicegate.pipeline.extract.answer import answer
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.longest import cut
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.results import REPORT, Results

_HEADS = ("topic", "partition", "records", "skipped", "too late for Spark")


def _rows(summary: dict[str, Any]) -> list[tuple[str, str, int, int, int]]:
    return [
        (name, partition, counts["records"], counts["skipped"], counts["too_late"])
        for name, topic in summary["topics"].items()
        for partition, counts in sorted(topic["partitions"].items(), key=lambda item: int(item[0]))
    ]


def console_table(summary: dict[str, Any]) -> ConsoleTable:
    """What the command prints."""
    shown, rest = cut(_rows(summary), "summary.json")
    return ConsoleTable("Records with event time", _HEADS, shown, rest)


def write_report(results: Results, summary: dict[str, Any], extractor: str, now_ms: int) -> None:
    """Counts by topic and partition."""
    shown, rest = cut(_rows(summary), "summary.json")
    section = Section("Partitions", tables=[Table(rest, _HEADS, shown)])
    about = "Counts are of all runs that wrote into this folder."
    results.write_text(REPORT, page("Event time", answer(summary, extractor), about, [section], now_ms))
