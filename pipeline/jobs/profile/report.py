"""Presents a profile as a report and as a table."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.profile.cells import HOURS, IS_CELL
from sluicegate.pipeline.jobs.profile.invalid_timestamps import (
    POSSIBLE_CODES,
    VALID_TIMESTAMP,
    InvalidTimestampKind,
    UncertainTimestampKind,
)
from sluicegate.pipeline.jobs.profile.reading import unreadable_of
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.page import ReportSection, Table, page
from sluicegate.pipeline.report.plots import Plot, bar_plot, share_beyond, time_plot
from sluicegate.pipeline.report.wording import (
    WORST,
    Conclusion,
    count_text,
    counts_in_words,
    cut_rows,
    duration,
    moment_and_ms,
    owner_in_words,
    range_text,
    share_text,
    worst_and_others,
)
from sluicegate.pipeline.runs.results import REPORT, Results
from sluicegate.pipeline.source.topics import left_out_warnings

_REPAIRED = frozenset(kind.value for kind in InvalidTimestampKind if kind != InvalidTimestampKind.PAST)


def conclusion(summary: Mapping[str, Any]) -> Conclusion:
    """Return the conclusion for all topics and the worst producer."""
    topics = summary["topics"]
    records = sum(topic["records"] for topic in topics.values())
    where = next(iter(topics)) if len(topics) == 1 else count_text(len(topics), "topic")
    if not records:
        return Conclusion(
            f"{where} contains no records." if len(topics) == 1 else f"{where} contain no records.", "Nothing."
        )
    kinds = {d.value: sum(topic["damage"][d.value] for topic in topics.values()) for d in InvalidTimestampKind}
    at_most = {name: sum(topic["damage_at_most"][name] for topic in topics.values()) for name in POSSIBLE_CODES}
    invalid = sum(kinds.values())
    perhaps = _perhaps(kinds, at_most)
    if not invalid and perhaps:
        return Conclusion(
            f"No timestamp of {count_text(records, 'record')} in {where} is certainly wrong.{perhaps}",
            "Check the producers whose times contradict their neighbours: either these are ahead, or the others are "
            "late (a replay, a backfill). The proxy's violation events name the clients of future records.",
        )
    if not invalid:
        return Conclusion(
            f"All timestamps of {count_text(records, 'record')} in {where} are valid.",
            "Nothing needs repair. sluicegate-spark advise recommends limits that keep the timestamps valid.",
        )
    name, producer = max(
        ((name, producer) for name, topic in topics.items() for producer in topic["producers"]),
        key=lambda found: sum(found[1]["damage"].values()),
    )
    its = sum(producer["damage"].values())
    of = f" on {name}" if len(topics) > 1 else ""
    found = (
        f"{share_text(invalid, records)} of {count_text(records, 'record')} in {where} have a wrong timestamp "
        f"({counts_in_words(kinds)}); {share_text(its, invalid)} of those come from one producer{of}, "
        f"{producer_name(producer)}.{perhaps}"
    )
    repaired = "" if not any(kinds[kind] for kind in _REPAIRED) else ", and repair shows a clean copy"
    return Conclusion(
        found,
        "Fix that producer first: brokers do not store the names of clients, but the proxy's violation events contain "
        f"them. advise recommends limits that reject such records{repaired}.",
    )


def _perhaps(damage: Mapping[str, int], at_most: Mapping[str, int]) -> str:
    """Return a sentence about the kinds for which only a range is known; an empty string if there are none."""
    ranges = {name: most for name, most in at_most.items() if most > damage[name]}
    if not ranges:
        return ""
    counts = counts_in_words({name: damage[name] for name in ranges}, ranges)
    return f" Not known exactly, because brokers do not store when these records were appended: {counts}."


def producer_name(producer: Mapping[str, Any]) -> str:
    """Return a producer's name, built from stored data, because Kafka does not store clients' names."""
    name = f"producer id {producer['producer_id']}" if producer["producer_id"] >= 0 else "without a producer id"
    return f"{name}, {'not compressed' if producer['codec'] == 'none' else producer['codec']}"


def worst_first(topics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the topics sorted by their number of invalid timestamps, then by their number of records."""
    return sorted(topics, key=lambda name: (-sum(topics[name]["damage"].values()), -topics[name]["records"], name))


_HOUR_MS = 3_600_000
_BY_BROKER = 1
_MOST_BARS = 400
_INVALID_TIMESTAMPS = [kind.value for kind in InvalidTimestampKind]


def write_report(results: Results, summary: dict[str, Any]) -> None:
    """Write the report from the profile's tables, with a section for each of the worst topics."""
    topics = summary["topics"]
    worst = worst_first(topics)
    shown, rest = cut_rows(worst, "summary.json")
    overview = Table(
        f"Timestamps with their number on the wire. {rest}".strip(),
        (
            "topic",
            "records",
            "invalid timestamps",
            "null keys",
            "bytes",
            "stored bytes",
            "smallest time",
            "largest time",
        ),
        [_overview(name, topics[name]) for name in shown],
    )
    listed = [name for name in worst if topics[name]["records"]]
    left = f"The {WORST} worst topics follow; summary.json lists all {len(listed):,}." if len(listed) > WORST else ""
    sections = [ReportSection("Topics", left, tables=[overview])]
    sections += [_section(results, name, topics[name]) for name in listed[:WORST]]
    future = f"Future: more than {duration(summary['after_max_ms'])} ahead of the record's append."
    lead = " ".join([future, *(f"{line}." for line in remarks(summary))])
    results.write_text(REPORT, page("Profile", conclusion(summary), lead, sections, summary["read_at_ms"]))


def console_table(summary: dict[str, Any]) -> ConsoleTable:
    """Return the table that the command prints."""
    shown, rest = cut_rows(worst_first(summary["topics"]), "summary.json")
    topics = ((name, summary["topics"][name]) for name in shown)
    rows = [
        (name, its["records"], its["null_keys"], its["bytes"], *(_count(its, d) for d in _INVALID_TIMESTAMPS))
        for name, its in topics
    ]
    return ConsoleTable("Profile", ("topic", "records", "null keys", "bytes", *_INVALID_TIMESTAMPS), rows, rest)


def _count(topic: Mapping[str, Any], damage: str) -> int | str:
    least = topic["damage"][damage]
    return range_text(least, topic["damage_at_most"].get(damage, least))


def remarks(summary: dict[str, Any]) -> list[str]:
    """Return a sentence for each omission: topics, deleted offsets that were not read, and unreadable batches."""
    return [
        *left_out_warnings(summary["left_out"]),
        *deleted_range_sentences(summary),
        *unreadable_range_sentences(summary),
    ]


def unreadable_range_sentences(summary: dict[str, Any]) -> list[str]:
    """Return a sentence for each range of unreadable batches, up to a limit."""
    listed = [
        f"{name}-{each['partition']}: {unreadable_of(each)}; the rest is counted"
        for name, topic in summary["topics"].items()
        for each in topic["unreadable"]
    ]
    shown, rest = cut_rows(listed, "summary.json")
    return [*shown, *([rest] if rest else [])]


def deleted_range_sentences(summary: dict[str, Any]) -> list[str]:
    """Return a sentence for each range of offsets that retention deleted before it could be read."""
    return [
        f"{name}-{its['partition']}: offsets {its['missing_from']} to {its['missing_to']} were deleted (retention?) "
        "before they could be read; the rest is counted"
        for name, topic in summary["topics"].items()
        for its in topic["missing"]
    ]


def odd_unit_sentences(summary: dict[str, Any]) -> list[str]:
    """Return a sentence for each unit in which implausible and future times were perhaps written."""
    return [
        f"{name}: {count:,} implausible or future times look like {unit}"
        for name, topic in summary["topics"].items()
        for unit, count in topic["likely_units"].items()
    ]


def _overview(name: str, topic: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(name, topic["records"], _invalid_range(topic), topic["null_keys"], topic["bytes"]),
        *(
            topic["stored_bytes"],
            moment_and_ms(topic["timestamp_min"]),
            moment_and_ms(topic["timestamp_max"]),
        ),
    )


def _invalid_range(topic: Mapping[str, Any]) -> int | str:
    least = sum(topic["damage"].values())
    more = sum(most - topic["damage"][name] for name, most in topic["damage_at_most"].items())
    return range_text(least, min(least + more, topic["records"]))


def _section(results: Results, name: str, topic: dict[str, Any]) -> ReportSection:
    producers = sorted(topic["producers"], key=lambda producer: -_invalid_records(producer))
    damage = Table(
        "Invalid timestamps",
        ("kind", "records", "share (at least)"),
        [(kind, _count(topic, kind), f"{100 * n / topic['records']:.4f} %") for kind, n in topic["damage"].items()],
    )
    units = Table(
        "Likely units of implausible and future times", ("unit", "records"), list(topic["likely_units"].items())
    )
    return ReportSection(
        name,
        " ".join(part for part in (owner_in_words(topic), _about_hours(topic)) if part),
        plots=[*_over_time(results, name), _distances(topic), _by_producer(producers, _at_least(topic))],
        tables=[damage, *([units] if units.rows else []), _producers_table(producers, _at_least(topic))],
    )


def _at_least(topic: Mapping[str, Any]) -> str:
    """Return the prefix for counts by producer if more records are possible, because the counts omit some kinds."""
    return ", at least" if any(most > topic["damage"][name] for name, most in topic["damage_at_most"].items()) else ""


def _producers_table(producers: list[dict[str, Any]], at_least: str = "") -> Table:
    """Return a table of the producers with the most invalid timestamps, with one row for all other producers."""
    worst, others = worst_and_others(producers)
    rows = [_producer(producer_name(p), [p]) for p in worst]
    caption = "Producers"
    if others:
        rows.append(_producer(f"{len(others):,} others", others))
        caption = (
            f"Producers: the {len(worst)} worst of {len(producers):,} and the sum of the others; summary.json lists all"
        )
    return Table(caption, ("producer", "records", "bytes", f"kinds{at_least}", f"invalid timestamps{at_least}"), rows)


def _producer(name: str, its: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    records, stored = (sum(producer[what] for producer in its) for what in ("records", "bytes"))
    kinds: dict[str, int] = defaultdict(int)
    for producer in its:
        for kind, count in producer["damage"].items():
            kinds[kind] += count
    return name, records, stored, counts_in_words(kinds) or "none", f"{100 * sum(kinds.values()) / records:.3f} %"


def _invalid_records(producer: dict[str, Any]) -> int:
    return sum(producer["damage"].values())


def _over_time(results: Results, topic: str) -> list[Plot]:
    """Return a plot of the records that are dated to the hour; no plot if there are no such records."""
    rows = results.read_table(HOURS).where(f.col("topic") == topic).where(IS_CELL).where("hour = hour_until")
    found = rows.groupBy("hour", "damage").agg(f.sum("records").alias("records")).orderBy("hour").collect()
    if not found:
        return []
    first, last = found[0]["hour"], found[-1]["hour"]
    unit = max(1, -(-((last - first) // _HOUR_MS + 1) // _MOST_BARS)) * _HOUR_MS
    counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in found:
        counts[row["damage"]][row["hour"] // unit * unit] += row["records"]
    times = sorted({time for series in counts.values() for time in series})
    series = {
        d: [counts[d][time] for time in times]
        for d in (VALID_TIMESTAMP, *_INVALID_TIMESTAMPS, *UncertainTimestampKind)
        if d in counts
    }
    return [time_plot(times, series, "Records by the hour of their neighbours' times", unit)]


def _about_hours(topic: Mapping[str, Any]) -> str:
    """Return an explanation of the plot over time."""
    if all(producer["timestamp_type"] == _BY_BROKER for producer in topic["producers"]):
        return ""
    shown = topic["records"] - topic["undated"]
    of = f"{shown:,} of {count_text(topic['records'], 'record')}" if topic["undated"] else "all records"
    rest = (
        f" The times around the other {topic['undated']:,} are constant, repeated or contradictory for more than "
        "an hour, so they have no hour."
        if topic["undated"]
        else ""
    )
    return (
        f"By hour: {of}. Brokers do not store when records were appended, so an hour is that of the records' own "
        f"times; in a topic that was copied or backfilled, it is the hour in which they were first written.{rest}"
    )


def _distances(topic: dict[str, Any]) -> Plot:
    series = {
        f"{side} {of}": [bound["beyond"] / topic["records"] for bound in topic["bounds"] if bound["side"] == side]
        for side, of in (("ahead", "of append"), ("behind", "append"))
    }
    for side in ("ahead", "behind"):
        its = [bound for bound in topic["bounds"] if bound["side"] == side]
        if any(bound["at_most"] > bound["beyond"] for bound in its):
            series[f"{side}, perhaps"] = [bound["at_most"] / topic["records"] for bound in its]
    bounds = [duration(bound["bound_ms"]) for bound in topic["bounds"] if bound["side"] == "ahead"]
    return share_beyond(bounds, series, "Share beyond each bound")


def _by_producer(producers: list[dict[str, Any]], at_least: str = "") -> Plot:
    most = producers[:WORST]
    kinds = [kind for kind in _INVALID_TIMESTAMPS if any(kind in p["damage"] for p in most)]
    series = {kind: [p["damage"].get(kind, 0) for p in most] for kind in kinds}
    series = series or {VALID_TIMESTAMP: [p["records"] for p in most]}
    of = f", the {len(most)} with most of {len(producers):,}" if len(most) < len(producers) else ""
    none = "none certainly invalid" if at_least else "none invalid"
    title = (
        f"Records with invalid timestamps by producer{at_least}{of}" if kinds else f"Records by producer ({none}{of})"
    )
    return bar_plot([producer_name(p) for p in most], series, title, "records")
