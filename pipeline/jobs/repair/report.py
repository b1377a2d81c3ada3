"""Presents a repair's changes as a report and as a table."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sluicegate.pipeline.jobs.profile.invalid_timestamps import InvalidTimestampKind, UncertainTimestampKind
from sluicegate.pipeline.jobs.profile.kinds import UNITS
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.plots import Plot, bar_plot
from sluicegate.pipeline.report.wording import (
    WORST,
    Conclusion,
    count_text,
    counts_in_words,
    cut_rows,
    moment_and_ms,
    owner_in_words,
    share_text,
    worst_and_others,
)
from sluicegate.pipeline.runs.results import REPORT, Results
from sluicegate.validation.units import likely_unit


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Return the conclusion for all topics, for a dry run or a repair."""
    topics = summary["topics"].values()
    records = sum(topic["records"] for topic in topics)
    repaired, left = (counts_by_kind(topics, what) for what in ("repaired", "undiagnosed"))
    perhaps = left.pop(UncertainTimestampKind.FUTURE.value, 0)
    changed, stay = sum(repaired.values()), sum(left.values())
    verb = "have" if summary["applied"] else "would have"
    of = f" ({counts_in_words(repaired)})" if changed else ""
    rest = f"; {count_text(stay, 'invalid timestamp')} {'is' if stay == 1 else 'are'} left unchanged" if stay else ""
    if perhaps:
        rest += f"; {perhaps:,} more may be ahead of their append, which is not certain, and are left unchanged"
    found = f"{share_text(changed, records)} of {count_text(records, 'record')} {verb} another timestamp{of}{rest}."
    return Conclusion(found, _to_do(summary, changed, stay, perhaps))


def _to_do(summary: Mapping[str, Any], changed: int, stay: int, perhaps: int) -> str:
    if summary["obstacles"]:
        return f"Remove these obstacles, then plan again: {'; '.join(summary['obstacles'])}"
    if summary["applied"]:
        return (
            "Compare the clean topic with sluicegate-spark verify --plan and this folder, then switch readers to it; "
            "they need isolation.level=read_committed."
        )
    if not changed + stay + perhaps:
        return (
            "Nothing: all timestamps are valid. Even with --apply, no clean topic is created, because it "
            "would be a plain copy."
        )
    offer = f" {_offer(perhaps)}" if perhaps and InvalidTimestampKind.FUTURE.value not in summary["keep"] else ""
    if not changed:
        return f"Nothing would be corrected: --apply would only write a plain copy.{offer}"
    return (
        f"Compare the times before and after in the examples. If they are correct, run the same command "
        f"with --apply.{offer}"
    )


def _offer(perhaps: int) -> str:
    return (
        f"If clocks of producers ran ahead, add --rewrite future: it sets the estimated append time of the {perhaps:,} "
        "records that may be ahead. If records were copied or replayed, their times may be valid: do not use this "
        "option."
    )


def future_sentences(summary: Mapping[str, Any]) -> list[str]:
    """Return sentences about records that are certainly and perhaps ahead; none if no record is perhaps ahead."""
    topics = summary["topics"].values()
    counts = [counts_by_kind(topics, what) for what in ("repaired", "undiagnosed")]
    certain, perhaps = (
        sum(its.get(damage, 0) for its in counts)
        for damage in (InvalidTimestampKind.FUTURE.value, UncertainTimestampKind.FUTURE.value)
    )
    if not perhaps:
        return []
    option = next((name for name in ("keep", "rewrite") if InvalidTimestampKind.FUTURE.value in summary[name]), None)
    why = "without --rewrite future" if option is None else f"by --{option} future"
    fate = "corrected too" if option == "rewrite" else "left unchanged"
    return [
        f"{certain:,} records are certainly ahead of their append, whenever that was. {perhaps:,} more may be: the "
        "broker does not store when records were appended, and their times have passed meanwhile. They are "
        f"{fate} {why}."
    ]


_HEADS = ("topic", "producer id", "damage", "records", "example at", "before", "after", "corrected times from", "to")


def _rows(changes: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            row["topic"],
            str(row["producer_id"]) if row["producer_id"] >= 0 else "none",
            row["damage"],
            row["records"],
            f"{row['example_at']['partition']}@{row['example_at']['offset']}",
            moment_and_ms(row["example_before"]),
            moment_and_ms(row["example_after"]),
            row["reason"] or moment_and_ms(row["earliest_after"]),
            moment_and_ms(row["latest_after"]) if row["solved"] else "",
        )
        for row in changes
    ]


def console_table(changes: list[dict[str, Any]], applied: bool) -> ConsoleTable:
    """Return the table that the command prints."""
    title = "Repaired" if applied else "Changes by --apply (a dry run: nothing is written)"
    shown, rest = cut_rows(_most_first(changes), "summary.json")
    return ConsoleTable(title, _HEADS, _rows(shown), rest)


def table_of(summary: Mapping[str, Any]) -> ConsoleTable:
    """Return the table of a summary."""
    return console_table(summary["changes"], summary["applied"])


def write_report(results: Results, summary: dict[str, Any], now_ms: int) -> None:
    """Write the report with one section for each topic."""
    sections = []
    for source, topic in summary["topics"].items():
        changes = _most_first([row for row in summary["changes"] if row["topic"] == source])
        shown, others = worst_and_others(changes)
        rows = [row[1:] for row in _rows(shown)]
        caption = f"{source} to {topic['to']}"
        if others:
            rows.append(_in_sum(others))
            most = f"the {len(shown)} of {len(changes):,} with most records"
            caption += f": {most} and the sum of the others; summary.json lists all"
        plots = [_by_producer(changes)] if changes else []
        text = "" if changes else "No invalid timestamps: the clean topic is a copy."
        text = " ".join(part for part in (owner_in_words(topic), text) if part)
        sections.append(ReportSection(source, text, plots, [Table(caption, _HEADS[1:], rows)] if changes else []))
    about = " ".join(
        [
            "Written." if summary["applied"] else "A dry run: nothing was written.",
            *future_sentences(summary),
            *remarks(summary),
        ]
    )
    results.write_text(REPORT, page("Repair", conclusion(summary), about, sections, now_ms))


def _most_first(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(changes, key=lambda row: (row["topic"], -row["records"], row["producer_id"]))


def _in_sum(others: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    kinds = ", ".join(sorted({row["damage"] for row in others}))
    return f"{len(others):,} others", kinds, sum(row["records"] for row in others), "", "", "", "", ""


def _by_producer(changes: list[dict[str, Any]]) -> Plot:
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in changes:
        counts[row["producer_id"]][row["damage"]] += row["records"]
    worst = sorted(counts, key=lambda producer: (-sum(counts[producer].values()), producer))[:WORST]
    kinds = sorted({damage for producer in worst for damage in counts[producer]})
    series = {damage: [counts[producer][damage] for producer in worst] for damage in kinds}
    of = f", the {len(worst)} producers with most of {len(counts):,}" if len(worst) < len(counts) else ""
    return bar_plot(
        [_producer_name(producer) for producer in worst],
        series,
        f"Records with invalid timestamps, certainly or perhaps{of}",
        "records",
    )


def _producer_name(producer_id: int) -> str:
    return f"producer {producer_id}" if producer_id >= 0 else "without a producer id"


def reason_unchanged(row: dict[str, Any], rules: Rules) -> str | None:
    """Return the reason why a row's records stay unchanged; None if they change."""
    if row["solved"]:
        return None
    damage = row["damage"]
    named = InvalidTimestampKind.FUTURE.value if damage == UncertainTimestampKind.FUTURE else damage
    if named in rules.keep:
        return f"left unchanged: --keep {named}"
    if damage == InvalidTimestampKind.IMPLAUSIBLE:
        unit = likely_unit(row["example_before"], rules.now_ms)
        guess = f"the example is perhaps {unit}" if unit else "no unit fits the example"
        return f"left unchanged: before --epoch, {guess}; --rewrite {damage} sets the append time"
    if row["may_be_valid"] and named not in rules.rewrite:
        return (
            "left unchanged: ahead of its neighbours, unless these are late, so it may be valid; --rewrite future "
            "changes it"
        )
    if damage in {unit.value for unit in UNITS.values()}:
        return "left unchanged: even when converted, it is later than the moment of reading"
    return "left unchanged: the partition has no usable time; --assume-ms MS sets one"


def first_lines(summary: dict[str, Any]) -> list[str]:
    """Return sentences about changed and unchanged records, beginning with records that look valid."""
    topics = summary["topics"].values()
    valid = _valid_looking(summary)
    records = sum(topic["records"] for topic in topics)
    would = "have changed" if summary["applied"] else "would change"
    repaired, left = counts_by_kind(topics, "repaired"), counts_by_kind(topics, "undiagnosed")
    return [
        remarks(summary)[0],
        f"{count_text(sum(repaired.values()) - valid, 'invalid timestamp')} {would}, "
        f"of {records:,} records in all{_in_words(repaired)}.",
        *(
            [f"{sum(left.values()):,} others are left unchanged{_in_words(left)}; the table gives reasons."]
            if left
            else ()
        ),
        *future_sentences(summary),
        *remarks(summary)[1:],
    ]


def remarks(summary: dict[str, Any]) -> list[str]:
    """Return sentences about changed records that look valid, about warnings and about obstacles."""
    valid = _valid_looking(summary)
    would = "have changed" if summary["applied"] else "would change"
    reason = " (their times are not certainly ahead; requested by --rewrite)" if valid else ""
    return [
        f"{valid:,} valid-looking records {would}{reason}.",
        *(f"Warning: {warning}." for warning in summary["warnings"]),
        *(f"This would stop --apply: {obstacle}" for obstacle in summary["obstacles"]),
    ]


def _valid_looking(summary: dict[str, Any]) -> int:
    return sum(topic["valid_looking"] for topic in summary["topics"].values())


def counts_by_kind(topics: Any, what: str) -> dict[str, int]:
    """Return a summary's counts by kind, over all topics. `what` is `repaired` or `undiagnosed`."""
    found: dict[str, int] = {}
    for topic in topics:
        for damage, count in topic[what].items():
            found[damage] = found.get(damage, 0) + count
    return found


def _in_words(counts: dict[str, int]) -> str:
    return ": " + ", ".join(f"{damage} {count:,}" for damage, count in sorted(counts.items())) if counts else ""
