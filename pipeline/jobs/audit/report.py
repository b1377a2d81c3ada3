"""What policies would have made of stored records, as a page and as a table."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.jobs.audit.findings import VERDICTS
from sluicegate.pipeline.jobs.audit.summary import cause_of, in_a_sentence, what_to_do, worst_first
from sluicegate.pipeline.jobs.profile.report import producer_name
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.report.plots import bars
from sluicegate.pipeline.report.wording import WORST, Conclusion, cut, dated, duration, folded, printable
from sluicegate.pipeline.results import REPORT, Results
from sluicegate.pipeline.selection import in_a_sentence as left_out

_SUMS = ("batches", "records", "bad_records")
_COUNTS = ("batches", "records in them", "bad records")
_FOUND = ("what becomes of it", "why", *_COUNTS, "first hour", "last hour")
_AT_REST = (
    "A broker rejects whole batches: records in them are not all bad. Moments are when batches were appended, as "
    "estimated, unless one was given."
)


def console_table(summary: Mapping[str, Any]) -> ConsoleTable:
    """What the command prints."""
    rows = [(name, *row) for name, topic in summary["topics"].items() for row in _findings(topic)]
    shown, rest = cut(rows, "summary.json")
    return ConsoleTable("Validated at rest", ("topic", *_FOUND), shown, rest)


def write_report(results: Results, summary: Mapping[str, Any]) -> None:
    """One sentence of finding, what to do, then what was found in each of the worst topics, with samples."""
    topics = summary["topics"]
    worst = worst_first(topics)
    shown, rest = cut(worst, "summary.json")
    rows = [(name, *(topics[name]["verdicts"][verdict]["records"] for verdict in VERDICTS)) for name in shown]
    records = Table(f"Records by what becomes of their batch. {rest}".strip(), ("topic", *VERDICTS), rows)
    told = [name for name in worst if topics[name]["findings"] or topics[name]["rehearsed"]]
    left = f"The {WORST} worst topics follow; summary.json has all {len(told):,}." if len(told) > WORST else ""
    sections = [Section("Topics", left, tables=[records])]
    sections += [_section(name, topics[name]) for name in told[:WORST] if topics[name]["findings"]]
    sections += [_rehearsed(name, topics[name]) for name in told[:WORST] if topics[name]["rehearsed"]]
    if summary["samples"]:
        sections.append(_samples(summary["samples"]))
    lead = " ".join([_AT_REST, *(f"{line}." for line in (*left_out(summary["left_out"]), *remarks(summary)))])
    results.write_text(REPORT, page("Validated at rest", conclusion(summary), lead, sections, summary["read_at_ms"]))


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Of all topics."""
    return Conclusion(in_a_sentence(summary["topics"]), what_to_do(summary["topics"]))


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """A sentence for whatever was not validated."""
    gone = [
        f"{name}-{gone['partition']}: offsets {gone['first_offset']} to {gone['last_offset']} were deleted "
        "(retention?) before they could be validated; the rest is"
        for name, topic in summary["topics"].items()
        for gone in topic["gone"]
    ]
    return [*(f"not validated: {words}" for words in summary["not_validated"]), *gone]


def _findings(topic: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            row["verdict"],
            printable(cause_of(row)),
            *(row[name] for name in _SUMS),
            *(dated(row[end]) for end in ("first_hour", "last_hour")),
        )
        for row in topic["findings"]
    ]


def _section(name: str, topic: Mapping[str, Any]) -> Section:
    shown, rest = cut(_findings(topic), "summary.json")
    tables = [Table(rest or "Why, those with most records first", _FOUND, shown), _producers(topic["producers"])]
    if topic.get("clients"):
        tables.append(_clients(topic["clients"]))
    worst = topic["findings"][:WORST]
    series = {"records": [row["records"] for row in worst]}
    plot = bars([printable(cause_of(row)) for row in worst], series, "Records in batches that break it", "records")
    return Section(name, plots=[plot], tables=tables)


def _producers(producers: list[dict[str, Any]]) -> Table:
    told = [producer for producer in producers if producer["told"]]
    worst, others = folded(told)
    rows: list[tuple[Any, ...]] = [
        (
            producer_name(producer),
            producer["records"],
            producer["told"],
            ", ".join(printable(cause_of(row)) for row in producer["findings"][:5]),
        )
        for producer in worst
    ]
    if others:
        sums = [sum(producer[name] for producer in others) for name in ("records", "told")]
        rows.append((f"{len(others):,} others", *sums, "see summary.json"))
    heads = ("producer", "its records", "in batches that are told", "why")
    return Table("By producer, as far as what is stored tells; clients' names are not stored", heads, rows)


def _clients(clients: list[dict[str, Any]]) -> Table:
    shown, rest = cut(clients, "summary.json")
    rows = [
        (
            printable(row["client_id"] or "(no client id)"),
            row["mode"] if row["is_stored"] else f"{row['mode']} (not stored)",
            printable(cause_of(row)),
            *(row[name] for name in _SUMS),
        )
        for row in shown
    ]
    return Table(rest or "By client, as the events tell", ("client", "what became of it", "why", *_COUNTS), rows)


def _rehearsed(name: str, topic: Mapping[str, Any]) -> Section:
    rows = []
    for row in topic["rehearsed"]:
        share = f"{100 * row['bad_records'] / topic['records']:.4g} %"
        rows.append((row["key"], duration(row["max_ms"]), row["batches"], row["bad_records"], share))
    heads = ("bound on trial", "set to", "batches with any", "records it would reject", "share of all")
    return Section(f"{name}: bounds on trial", tables=[Table("", heads, rows)])


def _samples(samples: list[dict[str, Any]]) -> Section:
    shown, rest = cut(samples, "the table samples")
    rows = [
        (
            f"{row['topic']}-{row['partition']}",
            str(row["offset"]),
            "" if row["timestamp"] is None else dated(row["timestamp"]),
            dated(row["appended_ms"]),
            f"{row['verdict']}: {printable(cause_of(row))}",
            printable(row["diagnosis"]),
        )
        for row in shown
    ]
    heads = ("partition", "offset", "timestamp", "validated as of", "what", "diagnosis")
    return Section("Samples", tables=[Table(rest or "The first bad records of each kind and partition", heads, rows)])
