"""A comparison as a table and as a page."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.report.wording import Conclusion, counts_in_words
from sluicegate.pipeline.results import REPORT, Results

_WRONGLY = "repaired wrongly"


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """The verdict, with how many differ and how."""
    names = f"{summary['source']} and {summary['target']}"
    if summary["same"]:
        repaired = sum(summary["repairs"].values())
        return Conclusion(
            f"{names} hold the same records, declared repairs aside.",
            f"Readers can change to {summary['target']}: all of its {summary['records']['target']:,} records are "
            f"accounted for, {repaired:,} of them as repaired.",
        )
    found = f"{names} do NOT hold the same records, declared repairs aside: {counts_in_words(summary['differences'])}."
    again = (
        " What is repaired wrongly needs a new repair, into a new topic." if summary["differences"][_WRONGLY] else ""
    )
    grown = "" if summary["records"]["source"] == summary["records"]["target"] else (
        " If the source was written to since, compare with --plan, which goes as far as the repair did."
    )  # fmt: skip
    to_do = f"Leave readers where they are. The table differences names each by partition and offset.{again}{grown}"
    return Conclusion(found, to_do)


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
    results.write_text(REPORT, page("Verification", conclusion(summary), _ABOUT, sections, now_ms))
