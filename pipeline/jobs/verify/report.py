"""Presents a comparison as a report and as a table."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.wording import Conclusion, counts_in_words
from sluicegate.pipeline.runs.results import REPORT, Results

_WRONGLY = "repaired wrongly"


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Return the verdict with the numbers of differences."""
    names = f"{summary['source']} and {summary['target']}"
    if summary["same"]:
        repaired = sum(summary["repairs"].values())
        return Conclusion(
            f"{names} have the same records, apart from declared repairs.",
            f"Readers can switch to {summary['target']}: all of its {summary['records']['target']:,} records are "
            f"accounted for, {repaired:,} of them as repaired.",
        )
    found = (
        f"{names} do NOT have the same records, apart from declared repairs: {counts_in_words(summary['differences'])}."
    )
    again = " To correct wrong repairs, repair again into a new topic." if summary["differences"][_WRONGLY] else ""
    grown = "" if summary["records"]["source"] == summary["records"]["target"] else (
        " If the source has new records, use --plan, which compares up to the end of the repair."
    )  # fmt: skip
    to_do = f"Do not switch readers. The table differences lists each difference by partition and offset.{again}{grown}"
    return Conclusion(found, to_do)


_ABOUT = "Repaired records are compared by their original timestamp, and without the three headers that a repair adds."


def _rows(summary: dict[str, Any]) -> list[tuple[str, int]]:
    counts = summary["records"]
    return [
        (f"records in {summary['source']}", counts["source"]),
        (f"records in {summary['target']}", counts["target"]),
        *((f"declared repairs: {kind}", count) for kind, count in sorted(summary["repairs"].items())),
        *summary["differences"].items(),
    ]


def console_table(summary: dict[str, Any]) -> ConsoleTable:
    """Return the table that the command prints."""
    return ConsoleTable("", ("count of", "records"), _rows(summary))


def write_report(results: Results, summary: dict[str, Any], now_ms: int) -> None:
    """Write the report, which shows the first differences."""
    sections = [ReportSection("Counts", tables=[Table("", ("count of", "records"), _rows(summary))])]
    if summary["samples"]:
        heads = [name.replace("_", " ") for name in summary["samples"][0]]
        rows = [tuple("" if cell is None else cell for cell in row.values()) for row in summary["samples"]]
        sections.append(ReportSection("First differences", tables=[Table("", heads, rows)]))
    results.write_text(REPORT, page("Verification", conclusion(summary), _ABOUT, sections, now_ms))
