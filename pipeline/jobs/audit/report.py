"""Presents an audit as a report and as a table."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.jobs.audit.findings import VERDICTS
from sluicegate.pipeline.jobs.audit.summary import cause_of, first_line, recommendation, worst_first
from sluicegate.pipeline.jobs.profile.report import producer_name
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.plots import bar_plot
from sluicegate.pipeline.report.wording import (
    WORST,
    Conclusion,
    count_text,
    cut_rows,
    duration,
    moment_and_ms,
    owner_in_words,
    printable,
    worst_and_others,
)
from sluicegate.pipeline.runs.results import REPORT, Results
from sluicegate.pipeline.source.topics import left_out_warnings

_SUMS = ("batches", "records", "bad_records")
_COUNTS = ("batches", "records", "bad records")
_FOUND = ("verdict", "reason", *_COUNTS, "from hour", "to hour, at most")
_AT_REST = (
    "A broker rejects whole batches, so not all of their records are bad. Times are validated as of the append of each "
    "batch, unless --as-of was given. Brokers do not store the append time, so it is a range; the verdict perhaps "
    "counts timestamps that are out of bounds for only a part of this range."
)

_ENCRYPTED = {
    "whole": "encrypted as a whole: only the schema was validated",
    "fields": "with encrypted fields: only the type of these fields was validated",
}


def console_table(summary: Mapping[str, Any]) -> ConsoleTable:
    """Return the table that the command prints."""
    rows = [(name, *row) for name, topic in summary["topics"].items() for row in _findings(topic)]
    shown, rest = cut_rows(rows, "summary.json")
    return ConsoleTable("Audit of stored records", ("topic", *_FOUND), shown, rest)


def write_report(results: Results, summary: Mapping[str, Any]) -> None:
    """Write the report: the finding and the recommendation, then the findings and samples of the worst topics."""
    topics = summary["topics"]
    worst = worst_first(topics)
    shown, rest = cut_rows(worst, "summary.json")
    rows = [(name, *(topics[name]["verdicts"][verdict]["records"] for verdict in VERDICTS)) for name in shown]
    records = Table(f"Records by the verdict on their batch. {rest}".strip(), ("topic", *VERDICTS), rows)
    affected = [name for name in worst if topics[name]["findings"] or topics[name]["rehearsed"]]
    left = (
        (f"The {WORST} worst topics follow; summary.json lists all {len(affected):,}.") if len(affected) > WORST else ""
    )
    sections = [ReportSection("Topics", left, tables=[records])]
    sections += [_section(name, topics[name]) for name in affected[:WORST] if topics[name]["findings"]]
    sections += [_rehearsed(name, topics[name]) for name in affected[:WORST] if topics[name]["rehearsed"]]
    if summary["samples"]:
        sections.append(_samples(summary["samples"]))
    sections += [_contract(name, topic["contract"]) for name, topic in topics.items() if "contract" in topic]
    lead = " ".join([_AT_REST, *(f"{line}." for line in (*left_out_warnings(summary["left_out"]), *remarks(summary)))])
    title = "Audit of stored records"
    results.write_text(REPORT, page(title, conclusion(summary), lead, sections, summary["read_at_ms"]))


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Return the conclusion for all topics."""
    return Conclusion(first_line(summary["topics"]), recommendation(summary["topics"]))


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each part that was not validated."""
    missing = [
        f"{name}-{missing['partition']}: offsets {missing['first_offset']} to {missing['last_offset']} were deleted "
        "(retention?) before they could be validated; the rest was validated"
        for name, topic in summary["topics"].items()
        for missing in topic["missing"]
    ]
    encrypted = [
        f"{name}: {count_text(row['records'], 'record')} {_ENCRYPTED[row['part']]} (registry {row['registry']})"
        for name, topic in summary["topics"].items()
        for row in topic.get("encrypted", ())
    ]
    failed = [
        f"{name}: its contract is broken: {check['check']}, found {_measured(check)}"
        for name, topic in summary["topics"].items()
        for check in topic.get("contract", {}).get("checks", ())
        if not check["passed"]
    ]
    return [*(f"not validated: {words}" for words in summary["not_validated"]), *missing, *encrypted, *failed]


def _findings(topic: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            row["verdict"],
            printable(cause_of(row)),
            *(row[name] for name in _SUMS),
            *(moment_and_ms(row[end]) for end in ("first_hour", "last_hour")),
        )
        for row in topic["findings"]
    ]


def _section(name: str, topic: Mapping[str, Any]) -> ReportSection:
    shown, rest = cut_rows(_findings(topic), "summary.json")
    tables = [Table(rest or "Reasons, most records first", _FOUND, shown), _producers(topic["producers"])]
    if topic.get("clients"):
        tables.append(_clients(topic["clients"]))
    worst = topic["findings"][:WORST]
    series = {"records": [row["records"] for row in worst]}
    plot = bar_plot([printable(cause_of(row)) for row in worst], series, "Records in bad batches by reason", "records")
    return ReportSection(name, owner_in_words(topic), plots=[plot], tables=tables)


def _producers(producers: list[dict[str, Any]]) -> Table:
    affected = [producer for producer in producers if producer["reported"]]
    worst, others = worst_and_others(affected)
    rows: list[tuple[Any, ...]] = [
        (
            producer_name(producer),
            producer["records"],
            producer["reported"],
            ", ".join(printable(cause_of(row)) for row in producer["findings"][:5]),
        )
        for producer in worst
    ]
    if others:
        sums = [sum(producer[name] for producer in others) for name in ("records", "reported")]
        rows.append((f"{len(others):,} others", *sums, "see summary.json"))
    heads = ("producer", "records", "in bad batches", "reasons")
    return Table("By producer (brokers do not store the names of clients)", heads, rows)


def _clients(clients: list[dict[str, Any]]) -> Table:
    shown, rest = cut_rows(clients, "summary.json")
    rows = [
        (
            printable(row["client_id"] or "(no client id)"),
            row["mode"] if row["is_stored"] else f"{row['mode']} (not stored)",
            printable(cause_of(row)),
            *(row[name] for name in _SUMS),
        )
        for row in shown
    ]
    return Table(rest or "By client, from violation events", ("client", "verdict", "reason", *_COUNTS), rows)


def _rehearsed(name: str, topic: Mapping[str, Any]) -> ReportSection:
    rows = []
    for row in topic["rehearsed"]:
        share = f"{100 * row['bad_records'] / topic['records']:.4g} %"
        rows.append((row["key"], duration(row["max_ms"]), row["batches"], row["bad_records"], share))
    heads = ("rehearsed bound", "value", "batches with violations", "rejected records", "share of records")
    return ReportSection(f"{name}: rehearsed bounds", tables=[Table("", heads, rows)])


def _contract(name: str, contract: Mapping[str, Any]) -> ReportSection:
    rows = [
        (printable(check["check"]), _measured(check), "passed" if check["passed"] else "failed")
        for check in contract["checks"]
    ]
    rows += [(printable(words), "", "not checked") for words in contract["not_checked"]]
    shown, rest = cut_rows(rows, "summary.json")
    return ReportSection(
        f"{name}: contract, version {contract['version']}", tables=[Table(rest, ("check", "found", ""), shown)]
    )


def _measured(check: Mapping[str, Any]) -> str:
    """Return the result of a contract's check in words."""
    return "no records" if check["found"] is None else f"{check['found']:g}"


def _samples(samples: list[dict[str, Any]]) -> ReportSection:
    shown, rest = cut_rows(samples, "the table samples")
    rows = [
        (
            f"{row['topic']}-{row['partition']}",
            str(row["offset"]),
            "" if row["timestamp"] is None else moment_and_ms(row["timestamp"]),
            moment_and_ms(row["appended_ms"]),
            f"{row['verdict']}: {printable(cause_of(row))}",
            printable(row["diagnosis"]),
        )
        for row in shown
    ]
    heads = ("partition", "offset", "timestamp", "validated as of", "violation", "diagnosis")
    return ReportSection(
        "Samples", tables=[Table(rest or "The first bad records of each kind and partition", heads, rows)]
    )
