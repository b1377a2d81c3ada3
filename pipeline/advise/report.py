"""Advice as a page and as a table."""

from collections.abc import Sequence
from typing import Any

from sluicegate.pipeline.advise.advice import Advice
from sluicegate.pipeline.advise.answer import answer
from sluicegate.pipeline.advise.job import limit_in_words
from sluicegate.pipeline.profile.bounds import in_words
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.longest import WORST, cut
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.report.plots import share_beyond
from sluicegate.pipeline.results import REPORT, Results

_HEADS = (
    "topic",
    "records",
    "before.max",
    "refused as late",
    "after.max",
    "refused as ahead",
    "sound ones refused",
    "Kafka 4's 1 h ahead refuses",
)


def _rows(advice: Sequence[Advice]) -> list[tuple[str | int, ...]]:
    return [
        (
            each.topic,
            each.records,
            limit_in_words(each.behind, each.broker_sets_times),
            each.behind.refused,
            limit_in_words(each.ahead, each.broker_sets_times),
            each.ahead.refused,
            each.behind.sound_refused + each.ahead.sound_refused,
            each.kafka_4.refused,
        )
        for each in advice
    ]


def console_table(advice: list[Advice]) -> ConsoleTable:
    """What the command prints above the configuration."""
    shown, rest = cut(_most_refused(advice), "summary.json")
    return ConsoleTable("Tightest limits", _HEADS, _rows(shown), rest)


def write_report(
    results: Results, profile_results: Results, advice: list[Advice], summary: dict[str, Any], now_ms: int
) -> None:
    """With a plot for each of the topics where most would be refused, and the configuration to paste."""
    share = f"{100 * summary['at_most']:g} %"
    most = _most_refused(advice)
    shown, rest = cut(most, "summary.json")
    caption = f"The tightest limits that refuse at most {share} of what is sound. {rest}".strip()
    left = f"The {WORST} topics where they refuse most follow." if len(most) > WORST else ""
    sections = [Section("Limits", left, tables=[Table(caption, _HEADS, _rows(shown))])]
    topics = profile_results.read_summary()["topics"]
    for each in most[:WORST]:
        its = topics[each.topic]["bounds"]
        names = [in_words(row["bound_ms"]) for row in its if row["side"] == "ahead"]
        series = {
            f"{side}{what}": [row[column] / each.records for row in its if row["side"] == side]
            for side in ("ahead", "behind")
            for what, column in (("", "beyond"), (", sound records", "sound_beyond"))
        }
        sections.append(Section(each.topic, plots=[share_beyond(names, series, "Share that a limit refuses")]))
    sections.append(Section("The configuration", "To be checked with sluicegate check.", code=summary["yaml"]))
    results.write_text(
        REPORT, page("Advice", answer(advice), "Distances are from the estimated time of append.", sections, now_ms)
    )


def _most_refused(advice: list[Advice]) -> list[Advice]:
    return sorted(advice, key=lambda each: (-each.behind.refused - each.ahead.refused, -each.records, each.topic))
