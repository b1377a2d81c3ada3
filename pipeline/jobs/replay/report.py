"""What becomes of dead letters, in sentences, as a table and as a page."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.report.wording import Conclusion, counted, cut, dated, printable, share
from sluicegate.pipeline.results import REPORT, Results


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Of all dead-letter topics, dry run or not."""
    topics = summary["topics"].values()
    records, back, corrected, left = (
        sum(topic[name] for topic in topics) for name in ("records", "replayed", "corrected", "left")
    )
    goes = "went back" if summary["applied"] else "would go back"
    stay = "is left where it is" if left == 1 else "are left where they are"
    found = (
        f"{share(back, records)} of {counted(records, summary['of'])} {goes}, {corrected:,} of them corrected; "
        f"{left:,} {stay}."
    )
    return Conclusion(found, _to_do(summary["of"], summary["applied"], records, back, left))


def _to_do(called: str, applied: bool, records: int, back: int, left: int) -> str:
    if not records:
        return f"Nothing: there are no {called}s that earlier runs have not taken."
    if applied:
        rest = " What is left is not tried again: it stands in the table left, and in its topic." if left else ""
        return f"Readers of the topics see each once with isolation.level=read_committed.{rest}"
    if not back:
        return "Nothing would be written. --fix, or a function of yours with --by, can correct what is left."
    more = (
        " First see whether --fix or --by can correct what is left: an applied run does not try it again."
        if left
        else ""
    )
    return f"Look at the times before and after. If they are right, give the same command with --apply.{more}"


_HEADS = ("in", "for", "kept for", "what becomes of them", "records", "example at", "in it")
_LEFT = ("record", "for", "kept for", "why it is left")


def first_lines(summary: Mapping[str, Any]) -> list[str]:
    """What goes back and what does not."""
    topics = summary["topics"].values()
    records, back, corrected, left = (
        sum(topic[name] for topic in topics) for name in ("records", "replayed", "corrected", "left")
    )
    goes = "went back" if summary["applied"] else "would go back"
    to: Counter[str] = Counter()
    why: Counter[str] = Counter()
    for row in summary["replays"]:
        to[row["to_topic"]] += row["records"]
    for row in summary["left"]:
        why[row["why"]] += row["records"]
    lines = [f"{back:,} of {records:,} {summary['of']}s {goes}, {corrected:,} of them corrected{_in_words(to)}."]
    if left:
        lines.append(f"{left:,} are left where they are{_in_words(why)}; the table left says why of each.")
    if summary["left_by_earlier_runs"]:
        lines.append(f"{summary['left_by_earlier_runs']:,} more were left by earlier runs; they are in that table too.")
    return lines


def console_table(summary: Mapping[str, Any]) -> ConsoleTable:
    """What the command prints."""
    title = "Replayed" if summary["applied"] else "What --apply would write (a dry run: nothing is written)"
    shown, rest = cut(_rows(summary), "summary.json")
    return ConsoleTable(title, _HEADS, shown, rest)


def write_report(results: Results, summary: Mapping[str, Any], now_ms: int) -> None:
    """What becomes of them, then those that are left, one by one."""
    shown, rest = cut(_rows(summary), "summary.json")
    sections = [Section("What becomes of them", tables=[Table(rest, _HEADS, shown)])]
    if summary["left_records"]:
        named, more = cut(summary["left_records"], "the table left")
        rows = [
            (
                f"{row['topic']}-{row['partition']}@{row['offset']}",
                _target(row["to_topic"], row["to_partition"]),
                printable(row["kept_for"] or ""),
                f"{printable(row['why'])}: {printable(row['told'])}",
            )
            for row in named
        ]
        sections.append(Section("Left where they are", tables=[Table(more, _LEFT, rows)]))
    about = " ".join(
        ["Written." if summary["applied"] else "A dry run: nothing was written.", *first_lines(summary)[1:]]
    )
    results.write_text(REPORT, page("Replay", conclusion(summary), about, sections, now_ms))


def _rows(summary: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    back = [
        (*_place(row), "back, corrected" if row["corrected"] else "back as it is", *_count(row), _change(row))
        for row in summary["replays"]
    ]
    left = [
        (*_place(row), f"left: {printable(row['why'])}", *_count(row), printable(row["told"]))
        for row in summary["left"]
    ]
    return [*back, *left]


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["topic"], printable(row["to_topic"] or ""), printable(row["kept_for"] or "")


def _count(row: Mapping[str, Any]) -> tuple[int, str]:
    return row["records"], f"{row['example_at']['partition']}@{row['example_at']['offset']}"


def _change(row: Mapping[str, Any]) -> str:
    if row["before"] == row["after"]:
        return f"timestamp {dated(row['after'])}"
    return f"timestamp {dated(row['before'])} becomes {dated(row['after'])}"


def _target(topic: str | None, partition: int | None) -> str:
    return "" if topic is None else f"{printable(topic)}-{partition}"


def _in_words(counts: Mapping[str, int]) -> str:
    return ": " + ", ".join(f"{printable(name)} {count:,}" for name, count in sorted(counts.items())) if counts else ""
