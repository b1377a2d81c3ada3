"""What policies would have made of stored records, as a page and as a table."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table as ConsoleTable
from rich.text import Text

from sluicegate.pipeline.judge.findings import VERDICTS
from sluicegate.pipeline.judge.summary import cause_of, in_a_sentence, what_to_do
from sluicegate.pipeline.profile.bounds import in_words
from sluicegate.pipeline.profile.report import producer_name
from sluicegate.pipeline.report.longest import cut
from sluicegate.pipeline.report.moments import moment
from sluicegate.pipeline.report.names import printable
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.report.plots import bars
from sluicegate.pipeline.results import REPORT, Results

_SUMS = ("batches", "records", "bad_records")
_COUNTS = ("batches", "records in them", "bad records")
_FOUND = ("what becomes of it", "why", *_COUNTS, "first hour", "last hour")
_MOST_PRODUCERS = 12
_AT_REST = (
    "A broker refuses whole batches: records in them are not all bad. Moments are when batches were appended, as "
    "estimated, unless one was given."
)


def console_table(summary: Mapping[str, Any]) -> ConsoleTable:
    """What the command prints."""
    table = ConsoleTable(title="Judged at rest")
    for head in ("topic", *_FOUND):
        table.add_column(head, justify="right" if head in _COUNTS else "left")
    rows = [(name, *row) for name, topic in summary["topics"].items() for row in _findings(topic)]
    shown, rest = cut(rows, "summary.json")
    for row in shown:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else cell) for cell in row))  # brackets: no markup
    table.caption = rest or None
    return table


def write_report(results: Results, summary: Mapping[str, Any]) -> None:
    """One sentence of finding, what to do, then what was found in each topic, with samples."""
    topics = summary["topics"]
    rows = [(name, *(topic["verdicts"][verdict]["records"] for verdict in VERDICTS)) for name, topic in topics.items()]
    records = Table("Records by what becomes of their batch", ("topic", *VERDICTS), rows)
    first = Section("What was found", f"{in_a_sentence(topics)} {what_to_do(topics)}", tables=[records])
    sections = [first, *(_section(name, topic) for name, topic in topics.items() if topic["findings"])]
    sections += [_rehearsed(name, topic) for name, topic in topics.items() if topic["rehearsed"]]
    if summary["samples"]:
        sections.append(_samples(summary["samples"]))
    lead = " ".join([_AT_REST, *(f"{line}." for line in remarks(summary))])
    results.write_text(REPORT, page("Judged at rest", lead, sections, summary["read_at_ms"]))


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """A sentence for whatever was not judged."""
    gone = [
        f"{name}-{gone['partition']}: offsets {gone['first_offset']} to {gone['last_offset']} were deleted "
        "(retention?) before they could be judged; the rest is"
        for name, topic in summary["topics"].items()
        for gone in topic["gone"]
    ]
    return [*(f"not judged: {words}" for words in summary["not_judged"]), *gone]


def _findings(topic: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            row["verdict"],
            printable(cause_of(row)),
            *(row[name] for name in _SUMS),
            *(moment(row[end]) for end in ("first_hour", "last_hour")),
        )
        for row in topic["findings"]
    ]


def _section(name: str, topic: Mapping[str, Any]) -> Section:
    shown, rest = cut(_findings(topic), "summary.json")
    tables = [Table(rest or "Why, those with most records first", _FOUND, shown), _producers(topic["producers"])]
    if topic.get("clients"):
        tables.append(_clients(topic["clients"]))
    worst = topic["findings"][:_MOST_PRODUCERS]
    series = {"records": [row["records"] for row in worst]}
    plot = bars([printable(cause_of(row)) for row in worst], series, "Records in batches that break it", "records")
    return Section(name, plots=[plot], tables=tables)


def _producers(producers: list[dict[str, Any]]) -> Table:
    told = [producer for producer in producers if producer["told"]]
    worst, others = told[:_MOST_PRODUCERS], told[_MOST_PRODUCERS:]
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
        rows.append((row["key"], in_words(row["max_ms"]), row["batches"], row["bad_records"], share))
    heads = ("bound on trial", "set to", "batches with any", "records it would refuse", "share of all")
    return Section(f"{name}: bounds on trial", tables=[Table("", heads, rows)])


def _samples(samples: list[dict[str, Any]]) -> Section:
    shown, rest = cut(samples, "the table samples")
    rows = [
        (
            f"{row['topic']}-{row['partition']}",
            str(row["offset"]),
            "" if row["timestamp"] is None else f"{row['timestamp']} ({moment(row['timestamp'])})",
            moment(row["appended_ms"]),
            f"{row['verdict']}: {printable(cause_of(row))}",
            printable(row["diagnosis"]),
        )
        for row in shown
    ]
    heads = ("partition", "offset", "timestamp", "judged as of", "what", "diagnosis")
    return Section("Samples", tables=[Table(rest or "The first bad records of each kind and partition", heads, rows)])
