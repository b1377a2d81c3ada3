"""Presents an extraction as a report and as a table."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.wording import Conclusion, count_text, cut_rows, share_text
from sluicegate.pipeline.runs.results import REPORT, Results


def conclusion(summary: Mapping[str, Any], extractor: str) -> Conclusion:
    """Return the conclusion for all partitions."""
    counts = [each for topic in summary["topics"].values() for each in topic["partitions"].values()]
    records, skipped = (sum(each[name] for each in counts) for name in ("records", "skipped"))
    read = records + skipped
    found = (
        f"With `--extractor {extractor}`, {share_text(records, read)} of "
        f"{count_text(read, 'record')} have an event time, "
        f"and {skipped:,} were skipped."
    )
    late = sum(each["too_late"] for each in counts)
    if late:
        return Conclusion(
            found,
            f"{late:,} have a time after Spark's latest timestamp: the column timestamp contains the number, "
            "sluicegate-spark profile names the producers, and sluicegate-spark repair fixes the topic.",
        )
    if skipped:
        return Conclusion(
            found,
            "Skipped records have a negative timestamp: sluicegate-spark profile names their producers. The "
            "extractors previous and wallclock keep such records.",
        )
    return Conclusion(
        found, "Nothing is missing. Run the same command again to continue with records that arrive later."
    )


_HEADS = ("topic", "partition", "records", "skipped", "too late for Spark")


def _rows(summary: dict[str, Any]) -> list[tuple[str, str, int, int, int]]:
    return [
        (name, partition, counts["records"], counts["skipped"], counts["too_late"])
        for name, topic in summary["topics"].items()
        for partition, counts in sorted(topic["partitions"].items(), key=lambda item: int(item[0]))
    ]


def console_table(summary: dict[str, Any]) -> ConsoleTable:
    """Return the table that the command prints."""
    shown, rest = cut_rows(_rows(summary), "summary.json")
    return ConsoleTable("Records with event time", _HEADS, shown, rest)


def write_report(results: Results, summary: dict[str, Any], extractor: str, now_ms: int) -> None:
    """Write the report with counts by topic and partition."""
    shown, rest = cut_rows(_rows(summary), "summary.json")
    section = ReportSection("Partitions", tables=[Table(rest, _HEADS, shown)])
    about = "The counts include all runs that wrote to this folder."
    results.write_text(REPORT, page("Event time", conclusion(summary, extractor), about, [section], now_ms))
