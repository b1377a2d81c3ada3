"""Formats the clients with violations in a topic for a terminal (`sluicegate who`)."""

from collections.abc import Iterator, Sequence

from sluicegate.proxy.live.live_state import ViolationGroupState
from sluicegate.proxy.watching.words import BECAME, diagnosis, moment, named, who


def lines_about(topic: str, violation_groups: Sequence[ViolationGroupState]) -> Iterator[str]:
    """Client by client, the worst first."""
    by_client: dict[str | None, list[ViolationGroupState]] = {}
    for group in violation_groups:
        by_client.setdefault(group["client_id"], []).append(group)
    if not by_client:
        yield f"{named(topic)}: nobody breaks anything, as far as is known here"
        return
    since = min(group["first_ms"] for group in violation_groups)
    clients = "1 client breaks" if len(by_client) == 1 else f"{len(by_client)} clients break"
    yield f"{named(topic)}: {clients} something, since {moment(since)} UTC"
    for client_id, found in sorted(by_client.items(), key=lambda item: -sum(one["batches"] for one in item[1])):
        newest = max(found, key=lambda one: one["last_ms"])
        yield f"{named(client_id)} ({who(newest['example'])})"
        for group in found:
            yield from _lines_of(group)


def _lines_of(group: ViolationGroupState) -> Iterator[str]:
    batches = "1 batch" if group["batches"] == 1 else f"{group['batches']:,} batches"
    records = "1 bad record" if group["bad_records"] == 1 else f"{group['bad_records']:,} bad records"
    times = f"{moment(group['first_ms'])} to {moment(group['last_ms'])}"
    became = BECAME.get(group["mode"], named(group["mode"]))
    yield f"  {named(group['reason'])}: {batches}, {records}, {times}; {became}"
    yield f"    such as {diagnosis(group['example'])}"
