"""A profile as a page and as a table."""

from collections import defaultdict
from typing import Any

from pyspark.sql import functions as f
from rich.table import Table as ConsoleTable

from sluicegate.pipeline.profile.bounds import in_words
from sluicegate.pipeline.profile.damage import NO_DAMAGE, Damage
from sluicegate.pipeline.profile.job import HOURS
from sluicegate.pipeline.report.longest import cut
from sluicegate.pipeline.report.moments import moment
from sluicegate.pipeline.report.page import Section, Table, page
from sluicegate.pipeline.report.plots import bars, over_time, share_beyond
from sluicegate.pipeline.results import REPORT, Results

_HOUR_MS = 3_600_000
_MOST_BARS = 400
_MOST_PRODUCERS = 12
_DAMAGES = [damage.value for damage in Damage]


def write_report(results: Results, summary: dict[str, Any]) -> None:
    """From the tables that the profile has written."""
    overview = Table(
        "Timestamps are milliseconds as they stand on the wire.",
        ("topic", "records", "null keys", "bytes", "stored bytes", "smallest timestamp", "largest timestamp"),
        [
            (
                *(name, t["records"], t["null_keys"], t["bytes"], t["stored_bytes"]),
                *(_with_date(t[end]) for end in ("timestamp_min", "timestamp_max")),
            )
            for name, t in summary["topics"].items()
        ],
    )
    sections = [Section("Topics", tables=[overview])]
    sections += [_section(results, name, topic) for name, topic in summary["topics"].items() if topic["records"]]
    future = f"Future is more than {in_words(summary['after_max_ms'])} ahead of when a record was appended."
    lead = " ".join([future, *(f"{line}." for line in went_meanwhile(summary))])
    results.write_text(REPORT, page("Profile", lead, sections, summary["read_at_ms"]))


def console_table(summary: dict[str, Any]) -> ConsoleTable:
    """What the command prints."""
    table = ConsoleTable(title="Profile")
    for head in ("topic", "records", "null keys", "bytes", *_DAMAGES):
        table.add_column(head, justify="left" if head == "topic" else "right")
    for name, topic in summary["topics"].items():
        counts = [topic["records"], topic["null_keys"], topic["bytes"], *(topic["damage"][d] for d in _DAMAGES)]
        table.add_row(name, *(f"{count:,}" for count in counts))
    return table


def went_meanwhile(summary: dict[str, Any]) -> list[str]:
    """A sentence for each stretch of offsets that retention took before it could be read."""
    return [
        f"{name}-{gone['partition']}: offsets {gone['gone_from']} to {gone['gone_to']} were deleted (retention?) "
        "before they could be read; the rest is counted"
        for name, topic in summary["topics"].items()
        for gone in topic["gone"]
    ]


def odd_units(summary: dict[str, Any]) -> list[str]:
    """A sentence for each unit that implausible and future times were perhaps written in."""
    return [
        f"{name}: {count:,} implausible or future times look like {unit}"
        for name, topic in summary["topics"].items()
        for unit, count in topic["likely_units"].items()
    ]


def _with_date(milliseconds: int | None) -> str:
    """As `0 (1970-01-01 00:00:00 UTC)`."""
    return "none" if milliseconds is None else f"{milliseconds} ({moment(milliseconds)})"


def producer_name(producer: dict[str, Any]) -> str:
    """As far as what is stored tells: clients' names are not."""
    who = f"producer id {producer['producer_id']}" if producer["producer_id"] >= 0 else "without a producer id"
    return f"{who}, {'not compressed' if producer['codec'] == 'none' else producer['codec']}"


def _section(results: Results, name: str, topic: dict[str, Any]) -> Section:
    producers = topic["producers"]
    damage = Table(
        "What is wrong with timestamps",
        ("kind", "records", "share"),
        [(kind, n, f"{100 * n / topic['records']:.4f} %") for kind, n in topic["damage"].items()],
    )
    units = Table(
        "What implausible and future times look like", ("unit", "records"), list(topic["likely_units"].items())
    )
    return Section(
        name,
        plots=[_over_time(results, name), _distances(topic), _by_producer(producers)],
        tables=[damage, *([units] if units.rows else []), _producers_table(producers)],
    )


def _producers_table(producers: list[dict[str, Any]]) -> Table:
    shown, rest = cut(producers, "summary.json")
    rows = [
        (
            producer_name(p),
            p["records"],
            p["bytes"],
            ", ".join(f"{kind} {count:,}" for kind, count in sorted(p["damage"].items())) or "none",
            f"{100 * sum(p['damage'].values()) / p['records']:.3f} %",
        )
        for p in shown
    ]
    return Table(f"Producers. {rest}".strip(), ("producer", "records", "bytes", "damage", "damaged"), rows)


def _over_time(results: Results, topic: str) -> str:
    rows = results.read_table(HOURS).where((f.col("topic") == topic) & f.col("gone_from").isNull())
    found = rows.groupBy("hour", "damage").agg(f.sum("records").alias("records")).orderBy("hour").collect()
    first, last = found[0]["hour"], found[-1]["hour"]
    unit = max(1, -(-((last - first) // _HOUR_MS + 1) // _MOST_BARS)) * _HOUR_MS
    counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in found:
        counts[row["damage"]][row["hour"] // unit * unit] += row["records"]
    times = sorted({time for series in counts.values() for time in series})
    series = {d: [counts[d][time] for time in times] for d in (NO_DAMAGE, *_DAMAGES) if d in counts}
    return over_time(times, series, "Records by when they were appended (estimated)", unit)


def _distances(topic: dict[str, Any]) -> str:
    sides = {"ahead": "ahead of append", "behind": "behind append"}
    series = {
        label: [bound["beyond"] / topic["records"] for bound in topic["bounds"] if bound["side"] == side]
        for side, label in sides.items()
    }
    bounds = [in_words(bound["bound_ms"]) for bound in topic["bounds"] if bound["side"] == "ahead"]
    return share_beyond(bounds, series, "Share beyond each bound")


def _by_producer(producers: list[dict[str, Any]]) -> str:
    most = sorted(producers, key=lambda p: -sum(p["damage"].values()))[:_MOST_PRODUCERS]
    kinds = [kind for kind in _DAMAGES if any(kind in p["damage"] for p in most)]
    series = {kind: [p["damage"].get(kind, 0) for p in most] for kind in kinds}
    series = series or {NO_DAMAGE: [p["records"] for p in most]}
    of = f", the {len(most)} with most of {len(producers):,}" if len(most) < len(producers) else ""
    title = f"Damaged records by producer{of}" if kinds else f"Records by producer (none are damaged{of})"
    return bars([producer_name(p) for p in most], series, title, "records")
