"""Who breaks what in a topic, as lines for a person (`sluicegate who`)."""

from collections.abc import Iterator, Sequence

from sluicegate.proxy.live.live_state import OffenceState
from sluicegate.proxy.watching.words import BECAME, diagnosis, moment, named, who


def lines_about(topic: str, offences: Sequence[OffenceState]) -> Iterator[str]:
    """Client by client, the worst first."""
    by_client: dict[str | None, list[OffenceState]] = {}
    for offence in offences:
        by_client.setdefault(offence["client_id"], []).append(offence)
    if not by_client:
        yield f"{named(topic)}: nobody breaks anything, as far as is known here"
        return
    since = min(offence["first_ms"] for offence in offences)
    clients = "1 client breaks" if len(by_client) == 1 else f"{len(by_client)} clients break"
    yield f"{named(topic)}: {clients} something, since {moment(since)} UTC"
    for client_id, found in sorted(by_client.items(), key=lambda item: -sum(one["batches"] for one in item[1])):
        newest = max(found, key=lambda one: one["last_ms"])
        yield f"{named(client_id)} ({who(newest['example'])})"
        for offence in found:
            yield from _lines_of(offence)


def _lines_of(offence: OffenceState) -> Iterator[str]:
    batches = "1 batch" if offence["batches"] == 1 else f"{offence['batches']:,} batches"
    records = "1 bad record" if offence["bad_records"] == 1 else f"{offence['bad_records']:,} bad records"
    times = f"{moment(offence['first_ms'])} to {moment(offence['last_ms'])}"
    became = BECAME.get(offence["mode"], named(offence["mode"]))
    yield f"  {named(offence['reason'])}: {batches}, {records}, {times}; {became}"
    yield f"    such as {diagnosis(offence['example'])}"
