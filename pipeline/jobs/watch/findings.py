"""Converts findings about producers to rows of a table, to lines, and to JSON for a webhook.

They contain no record contents, and no names except those of topics and of rules in the configuration file.
"""

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sluicegate.pipeline.jobs.watch.producers import FindingState, FindingSubject, WatchFinding

DDL = (
    "id string, batch string, reported_at bigint, topic string, producer_id bigint, about string, change string, "
    "what string, before string, records bigint, hour bigint"
)
_NO_ID = -1


def finding_row(finding: WatchFinding, batch: str, reported_at: int) -> dict[str, Any]:
    """Return the finding as a row.

    A repeated batch produces the same `id`, so that a receiver can detect duplicates.
    """
    known_by = (finding.topic, finding.producer_id, finding.about, finding.change, finding.what)
    return {
        "id": sha256("\0".join(map(str, (batch, *known_by))).encode()).hexdigest()[:16],
        "batch": batch,
        "reported_at": reported_at,
        "topic": finding.topic,
        "producer_id": finding.producer_id,
        "about": finding.about.value,
        "change": finding.change.value,
        "what": finding.what,
        "before": finding.before,
        "records": finding.records,
        "hour": finding.hour,
        "hour_until": finding.hour_until,
    }


def finding_line(row: dict[str, Any]) -> str:
    """Return a line such as `orders: producer 7001: damage nanoseconds began, 40 records, 2026-11-24 09:00`."""
    records = f", {row['records']} records" if row["records"] else ""
    return f"{row['topic']}: {producer_name(row)}: {description(row)}{records}, {hour_of(row)}"


def hour_of(row: dict[str, Any]) -> str:
    """Return the hour, such as `2026-11-24 09:00`, or `between 2026-11-24 09:00 and 2026-11-25 13:00`."""
    first, last = (
        datetime.fromtimestamp(hour / 1000, UTC).strftime("%Y-%m-%d %H:00")
        for hour in (row["hour"], row.get("hour_until", row["hour"]))  # findings of earlier releases have one hour
    )
    return first if first == last else f"between {first} and {last}"


def producer_name(row: dict[str, Any]) -> str:
    """Return a name such as `producer 7001`."""
    return "producers without an id" if row["producer_id"] == _NO_ID else f"producer {row['producer_id']}"


def description(row: dict[str, Any]) -> str:
    """Return a description such as `damage nanoseconds began`."""
    about, change, now, before = row["about"], row["change"], row["what"], row["before"]
    if about in (FindingSubject.AHEAD, FindingSubject.BEHIND):
        side = "ahead of" if about == FindingSubject.AHEAD else "behind"
        words = f"half of the valid records are {now} {side} their append"
        return f"{words}, was {before}" if before else words
    if change == FindingState.CHANGED:
        return f"{about} changed from {before} to {now}"
    return f"{about} {now} {'began' if change == FindingState.BEGAN else 'has ended'}"
