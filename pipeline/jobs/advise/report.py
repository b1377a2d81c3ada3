"""Presents advice as a report and as a table."""

from collections.abc import Sequence
from typing import Any

from sluicegate.pipeline.jobs.advise.full_enforcement import FullEnforcement, section_of
from sluicegate.pipeline.jobs.advise.job import Advice, limit_in_words
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.plots import share_beyond
from sluicegate.pipeline.report.wording import (
    WORST,
    Conclusion,
    count_text,
    cut_rows,
    duration,
    owner_in_words,
    range_text,
    share_text,
)
from sluicegate.pipeline.runs.results import REPORT, Results
from sluicegate.protocol.integers import LONG_MAX

_MOST_NAMED = 5
_DISTANCES = (
    "Distances are from the append. Brokers store it only with LogAppendTime; otherwise it is a range, from the "
    "partition's own times to the moment of reading, and so are the figures."
)


def conclusion(advice: Sequence[Advice]) -> Conclusion:
    """Return the conclusion for all topics with records."""
    if not advice:
        return Conclusion(
            "There are no records to derive limits from.", "Run advise again when the topics have records."
        )
    records = sum(each.records for each in advice)
    rejected = sum(each.behind.rejected + each.ahead.rejected for each in advice)
    at_most = min(sum(each.behind.rejected_at_most + each.ahead.rejected_at_most for each in advice), records)
    valid = sum(each.behind.valid_rejected + each.ahead.valid_rejected for each in advice)
    found = (
        f"The tightest limits for {count_text(len(advice), 'topic')} "
        f"would have rejected {share_text(rejected, records)} of "
        f"{count_text(records, 'record')}, {valid:,} of them valid."
    )
    if at_most > rejected:
        found += (
            f" It may have been up to {at_most:,}: brokers do not store when records were appended, and these would be "
            "rejected if their topic was copied or backfilled, or if their producers' clocks were ahead."
        )
    loose = [each.topic for each in advice if _is_loose(each)]
    named = ", ".join(loose[:_MOST_NAMED]) + (f" and {len(loose) - _MOST_NAMED:,} more" if loose[_MOST_NAMED:] else "")
    more = f" On {named}, valid records are beyond every limit on one side. A larger --at-most allows a limit there."
    return Conclusion(
        found,
        "Run a proxy with the configuration below: it reports violations and rejects nothing (defaults: mode: "
        f"observe). Watch its reports for a while, then enforce the limits with mode: reject.{more if loose else ''}",
    )


def _is_loose(each: Advice) -> bool:
    return not each.broker_sets_times and LONG_MAX in (each.behind.bound_ms, each.ahead.bound_ms)


_HEADS = (
    "topic",
    "records",
    "before.max",
    "rejected as late",
    "after.max",
    "rejected as ahead",
    "valid records rejected",
    "rejected by Kafka 4",
)


def _rows(advice: Sequence[Advice]) -> list[tuple[str | int, ...]]:
    return [
        (
            each.topic,
            each.records,
            limit_in_words(each.behind, each.broker_sets_times),
            range_text(each.behind.rejected, each.behind.rejected_at_most),
            limit_in_words(each.ahead, each.broker_sets_times),
            range_text(each.ahead.rejected, each.ahead.rejected_at_most),
            each.behind.valid_rejected + each.ahead.valid_rejected,
            range_text(each.kafka_4.rejected, each.kafka_4.rejected_at_most),
        )
        for each in advice
    ]


def console_table(advice: list[Advice]) -> ConsoleTable:
    """Return the table that the command prints above the configuration."""
    shown, rest = cut_rows(_most_rejected(advice), "summary.json")
    return ConsoleTable("Tightest limits", _HEADS, _rows(shown), rest)


def write_report(
    results: Results,
    profile_results: Results,
    advice: list[Advice],
    summary: dict[str, Any],
    found: Sequence[FullEnforcement],
    now_ms: int,
) -> None:
    """Write the report, with a plot for each topic with many rejections, and the configuration."""
    share = f"{100 * summary['at_most']:g} %"
    most = _most_rejected(advice)
    shown, rest = cut_rows(most, "summary.json")
    caption = f"The tightest limits that reject at most {share} of the valid records. {rest}".strip()
    left = f"The {WORST} topics with the largest rejected shares follow." if len(most) > WORST else ""
    sections = [ReportSection("Limits", left, tables=[Table(caption, _HEADS, _rows(shown))])]
    if found:
        sections.append(section_of(found))
    topics = profile_results.read_summary()["topics"]
    for each in most[:WORST]:
        its = topics[each.topic]["bounds"]
        names = [duration(row["bound_ms"]) for row in its if row["side"] == "ahead"]
        series = {
            f"{side}{what}": [row[column] / each.records for row in its if row["side"] == side]
            for side in ("ahead", "behind")
            for what, column in (("", "beyond"), (", perhaps", "at_most"), (", valid records", "valid_beyond"))
        }
        owner = owner_in_words(summary["topics"][each.topic])
        sections.append(
            ReportSection(
                each.topic, owner, plots=[share_beyond(names, series, "Share of records that a limit rejects")]
            )
        )
    sections.append(ReportSection("The configuration", "Check it with sluicegate check.", code=summary["yaml"]))
    results.write_text(REPORT, page("Advice", conclusion(advice), _DISTANCES, sections, now_ms))


def _most_rejected(advice: list[Advice]) -> list[Advice]:
    return sorted(advice, key=lambda each: (-each.behind.rejected - each.ahead.rejected, -each.records, each.topic))
