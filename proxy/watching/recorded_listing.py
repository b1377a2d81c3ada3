"""Formats recent violations for `sluicegate who --days`."""

from collections.abc import Iterator, Mapping
from typing import Any

from sluicegate.proxy.watching.formatting import iso_time, printable_name
from sluicegate.proxy.watching.topic_violations import lines_about


def lines_of(found: Mapping[str, Any], topic: str | None) -> Iterator[str]:
    """Yield the lines for a response of `/api/violations`, topic by topic.

    `topic` is set if only one topic is shown.
    """
    known = f"from {iso_time(found['since_ms'])} to {iso_time(found['until_ms'])} ({printable_name(found['topic'])})"
    since_ms = found["complete_since_ms"]
    if since_ms is None:
        yield f"not all of these events could be read: {found['events']:,} were"
    elif since_ms > found["since_ms"]:
        known = f"from {iso_time(since_ms)} to {iso_time(found['until_ms'])} ({printable_name(found['topic'])})"
        yield f"only the newest {found['events']:,} events were read, from {iso_time(since_ms)} on"
    if found["skipped"]:
        yield f"skipped {found['skipped']:,} records that are not violation events"
    if found["other"]:
        yield f"{found['other']:,} more batches are in groups beyond the limit of listed groups"
    topics: dict[str | None, list[Any]] = {} if topic is None else {topic: []}
    for group in found["groups"]:
        topics.setdefault(group["topic"], []).append(group)
    if not topics:
        yield f"no violations recorded {known}"
    for name, groups in topics.items():
        yield from lines_about(name, groups, known)
