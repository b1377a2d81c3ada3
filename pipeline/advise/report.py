"""Advice as a page and as a table."""

from typing import Any

from rich.table import Table as ConsoleTable

from sluicegate.pipeline.advise.advice import Advice
from sluicegate.pipeline.advise.job import limit_in_words
from sluicegate.pipeline.profile.bounds import in_words
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


def _rows(advice: list[Advice]) -> list[tuple[str | int, ...]]:
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
    table = ConsoleTable(title="Tightest limits")
    for head in _HEADS:
        table.add_column(head, justify="left" if head == "topic" else "right")
    for row in _rows(advice):
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else cell for cell in row))
    return table


def write_report(
    results: Results, profile_results: Results, advice: list[Advice], summary: dict[str, Any], now_ms: int
) -> None:
    """With a plot for each topic, and the configuration to paste."""
    share = f"{100 * summary['at_most']:g} %"
    limits = Table(f"The tightest limits that refuse at most {share} of what is sound", _HEADS, _rows(advice))
    sections = [Section("Limits", tables=[limits])]
    topics = profile_results.read_summary()["topics"]
    for each in advice:
        its = topics[each.topic]["bounds"]
        names = [in_words(row["bound_ms"]) for row in its if row["side"] == "ahead"]
        series = {
            f"{side}{what}": [row[column] / each.records for row in its if row["side"] == side]
            for side in ("ahead", "behind")
            for what, column in (("", "beyond"), (", sound records", "sound_beyond"))
        }
        sections.append(Section(each.topic, plots=[share_beyond(names, series, "Share that a limit refuses")]))
    sections.append(Section("The configuration", "To be checked with sluicegate check.", code=summary["yaml"]))
    results.write_text(REPORT, page("Advice", "Distances are from the estimated time of append.", sections, now_ms))
