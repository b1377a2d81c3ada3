"""Describes a replay in sentences, as a report and as a table."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.wording import (
    Conclusion,
    count_text,
    cut_rows,
    moment_and_ms,
    printable,
    share_text,
)
from sluicegate.pipeline.runs.results import REPORT, Results


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Return the conclusion for all dead-letter topics, for a dry run or a replay."""
    topics = summary["topics"].values()
    records, back, corrected, remaining = (
        sum(topic[name] for topic in topics) for name in ("records", "replayed", "corrected", "remaining")
    )
    goes = "were written back" if summary["applied"] else "would be written back"
    stay = "remains where it is" if remaining == 1 else "remain where they are"
    found = (
        f"{share_text(back, records)} of {count_text(records, summary['of'])} {goes}, {corrected:,} of them corrected; "
        f"{remaining:,} {stay}."
    )
    return Conclusion(found, _to_do(summary["of"], summary["applied"], records, back, remaining))


def _to_do(called: str, applied: bool, records: int, back: int, remaining: int) -> str:
    if not records:
        return f"Nothing: earlier runs have handled all {called}s."
    if applied:
        rest = (
            (" The remaining records are not tried again: see the table remaining and their topic.")
            if remaining
            else ""
        )
        return f"With isolation.level=read_committed, readers of the topics see each record once.{rest}"
    if not back:
        return (
            "Nothing would be written. --fix, or your function with --by, may be able to correct the remaining records."
        )
    more = (
        " First check whether --fix or --by can correct the remaining records: an applied run does not try them again."
        if remaining
        else ""
    )
    return f"Compare the times before and after. If they are correct, run the same command with --apply.{more}"


_HEADS = ("source", "destination", "rejected for", "decision", "records", "example", "details")
_REMAINING = ("record", "destination", "rejected for", "reason")


def first_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return sentences about records that are written back and records that remain."""
    topics = summary["topics"].values()
    records, back, corrected, remaining = (
        sum(topic[name] for topic in topics) for name in ("records", "replayed", "corrected", "remaining")
    )
    goes = "were written back" if summary["applied"] else "would be written back"
    to: Counter[str] = Counter()
    reason: Counter[str] = Counter()
    for row in summary["replays"]:
        to[row["to_topic"]] += row["records"]
    for row in summary["remaining"]:
        reason[row["reason"]] += row["records"]
    lines = [f"{back:,} of {records:,} {summary['of']}s {goes}, {corrected:,} of them corrected{_in_words(to)}."]
    if remaining:
        stay = "remains where it is" if remaining == 1 else "remain where they are"
        lines.append(f"{remaining:,} {stay}{_in_words(reason)}; the table remaining gives the reasons.")
    if summary["remaining_by_earlier_runs"]:
        lines.append(
            f"{summary['remaining_by_earlier_runs']:,} more remained after earlier runs; they are in that table too."
        )
    return lines


def console_table(summary: Mapping[str, Any]) -> ConsoleTable:
    """Return the table that the command prints."""
    title = "Replayed" if summary["applied"] else "Records that --apply would write (a dry run: nothing is written)"
    shown, rest = cut_rows(_rows(summary), "summary.json")
    return ConsoleTable(title, _HEADS, shown, rest)


def write_report(results: Results, summary: Mapping[str, Any], now_ms: int) -> None:
    """Write the report: the decisions, then the remaining records."""
    shown, rest = cut_rows(_rows(summary), "summary.json")
    sections = [ReportSection("Decisions", tables=[Table(rest, _HEADS, shown)])]
    if summary["remaining_records"]:
        named, more = cut_rows(summary["remaining_records"], "the table remaining")
        rows = [
            (
                f"{row['topic']}-{row['partition']}@{row['offset']}",
                _target(row["to_topic"], row["to_partition"]),
                printable(row["kept_for"] or ""),
                f"{printable(row['reason'])}: {printable(row['reported'])}",
            )
            for row in named
        ]
        sections.append(ReportSection("Remaining records", tables=[Table(more, _REMAINING, rows)]))
    about = " ".join(
        ["Written." if summary["applied"] else "A dry run: nothing was written.", *first_lines(summary)[1:]]
    )
    results.write_text(REPORT, page("Replay", conclusion(summary), about, sections, now_ms))


def _rows(summary: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    back = [
        (*_place(row), "corrected" if row["corrected"] else "unchanged", *_count(row), _change(row))
        for row in summary["replays"]
    ]
    remaining = [
        (*_place(row), f"remains: {printable(row['reason'])}", *_count(row), printable(row["reported"]))
        for row in summary["remaining"]
    ]
    return [*back, *remaining]


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["topic"], printable(row["to_topic"] or ""), printable(row["kept_for"] or "")


def _count(row: Mapping[str, Any]) -> tuple[int, str]:
    return row["records"], f"{row['example_at']['partition']}@{row['example_at']['offset']}"


def _change(row: Mapping[str, Any]) -> str:
    if row["before"] == row["after"]:
        return f"timestamp {moment_and_ms(row['after'])}"
    return f"timestamp {moment_and_ms(row['before'])} becomes {moment_and_ms(row['after'])}"


def _target(topic: str | None, partition: int | None) -> str:
    return "" if topic is None else f"{printable(topic)}-{partition}"


def _in_words(counts: Mapping[str, int]) -> str:
    return ": " + ", ".join(f"{printable(name)} {count:,}" for name, count in sorted(counts.items())) if counts else ""
