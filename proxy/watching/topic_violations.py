"""Reads event files, and formats a topic's violations for `sluicegate who`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sluicegate.proxy.live.live_state import ViolationGroupState
from sluicegate.proxy.watching.formatting import (
    client_of,
    client_owner_of,
    diagnosis_text,
    iso_time,
    outcome_in_words,
    printable_name,
)
from sluicegate.proxy.watching.violation_counts import ViolationCounts

_MAX_LINE = 16 << 20


class EventsUnreadable(Exception):
    """An event file cannot be read. The message contains the file and the reason."""


def read_files(counts: ViolationCounts, files: Sequence[Path]) -> None:
    """Count the events in files. Raises EventsUnreadable."""
    for file in files:
        for line in _lines_of(file):
            if line.strip():
                counts.take(line)


def _lines_of(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as content:
            while line := content.readline(_MAX_LINE):
                yield line
    except OSError as error:
        raise EventsUnreadable(f"{file} cannot be read: {error.strerror}") from error


def lines_about(topic: str | None, violation_groups: Sequence[ViolationGroupState], known: str) -> Iterator[str]:
    """Yield the lines for each client, most batches first.

    `known` names the source of the violations and the time from which they are known.
    """
    by_client: dict[str | None, list[ViolationGroupState]] = {}
    for group in violation_groups:
        by_client.setdefault(group["client_id"], []).append(group)
    if not by_client:
        yield f"{printable_name(topic)}: no violations recorded {known}"
        return
    clients = "1 client" if len(by_client) == 1 else f"{len(by_client)} clients"
    yield f"{printable_name(topic)}: {clients} with violations {known}"
    spared = [group for group in violation_groups if group["example"].get("enforced") is False]
    if spared:
        batches, of = sum(group["batches"] for group in spared), len({group["client_id"] for group in spared})
        yield f"  full enforcement would also reject or fix {batches:,} batches, of {of} of these clients (enforce)"
    for client_id, found in sorted(by_client.items(), key=lambda item: -sum(one["batches"] for one in item[1])):
        newest = max(found, key=lambda one: one["last_ms"])
        owner = client_owner_of(newest["example"])
        yield f"{printable_name(client_id)} ({client_of(newest['example'])}){f', owner: {owner}' if owner else ''}"
        for group in found:
            yield from _group_lines(group)


def _group_lines(group: ViolationGroupState) -> Iterator[str]:
    batches = "1 batch" if group["batches"] == 1 else f"{group['batches']:,} batches"
    records = "1 bad record" if group["bad_records"] == 1 else f"{group['bad_records']:,} bad records"
    times = f"{iso_time(group['first_ms'])} to {iso_time(group['last_ms'])}"
    rule = group.get("rule")  # a running proxy does not report the rule here
    reason = group["reason"] if rule is None else f"{group['reason']} ({rule})"
    yield f"  {printable_name(reason)}: {batches}, {records}, {times}; {outcome_in_words(group)}"
    yield f"    example: {diagnosis_text(group['example'])}"
