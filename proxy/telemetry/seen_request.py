"""What is kept of a judged Produce request to make a span of: plain values, bounded, nothing of its bytes."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.reporting.bounded_text import cut, printable
from sluicegate.proxy.reporting.events.violation_event import Who, who
from sluicegate.proxy.reporting.logs.validation_details import refusal
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.produce import JudgedRequest, Place
from sluicegate.validation.verdict import Refused

MOST_TOPICS = 10
UNCHECKED, FORWARDED, OBSERVED, FIXED = "unchecked", "forwarded", "observed", "fixed"
QUARANTINED, REFUSED, SEND_AGAIN = "quarantined", "refused", "send_again"
_WORST_FIRST = (SEND_AGAIN, REFUSED, QUARANTINED, FIXED, OBSERVED, FORWARDED, UNCHECKED)
NOT_STORED = frozenset({SEND_AGAIN, REFUSED, QUARANTINED})


class SeenRequest(NamedTuple):
    """One request. `verdict` is the worst of its batches', `batches` says how many have which; `problem` is what a log
    line says of the first in which something is wrong. `untraced`: others of the kind since the last one that was kept.
    `sent_ms`: when it left, or was answered here (since the epoch); times in seconds; `upstream_seconds` None: nobody
    waited for a broker's answer, or none came.
    """

    client: Who
    topics: tuple[str, ...]
    topic_count: int
    partition_count: int
    records: int
    acks: int
    version: int
    verdict: str
    batches: dict[str, int]
    problem: dict[str, Any] | None
    untraced: int
    sent_ms: int
    proxy_seconds: float
    upstream_seconds: float | None = None


def seen(
    identity: ClientIdentity,
    request: ProduceRequest,
    judged: JudgedRequest,
    names: Mapping[bytes, str],
    untraced: int,
    sent_ms: int,
    proxy_seconds: float,
) -> SeenRequest:
    """`names` resolves topic ids."""
    client = who(identity)
    named = (topic.name if topic.name is not None else names.get(topic.topic_id or b"") for topic in request.topics)
    topics = tuple(printable(cut(name)) for name in islice(named, MOST_TOPICS) if name is not None)
    batches = _batches(judged)
    return SeenRequest(
        client,
        topics,
        len(request.topics),
        sum(len(topic.partitions) for topic in request.topics),
        _records(judged),
        request.acks,
        request.version,
        next((verdict for verdict in _WORST_FIRST if batches.get(verdict)), UNCHECKED),
        batches,
        _problem(client, request, judged, names),
        untraced,
        sent_ms,
        proxy_seconds,
    )


def _batches(judged: JudgedRequest) -> dict[str, int]:
    only_observed = sum(place not in judged.refused for place in judged.observed)
    counts = {
        SEND_AGAIN: len(judged.left_open),
        QUARANTINED: len(judged.quarantined),
        REFUSED: len(judged.refused) - len(judged.left_open) - len(judged.quarantined),
        FIXED: len(judged.fixed),
        OBSERVED: only_observed,
        FORWARDED: sum(place not in judged.fixed and place not in judged.observed for place in judged.accepted),
        UNCHECKED: judged.unchecked + judged.exempt,
    }
    return {verdict: count for verdict, count in counts.items() if count}


def _records(judged: JudgedRequest) -> int:
    """By the batches' own counts, of those that were judged."""
    count = sum(accepted.records for accepted in judged.accepted.values())
    count += sum(refused.records for refused in judged.refused.values())
    more = (place for place in judged.observed if place not in judged.accepted and place not in judged.refused)
    return count + sum(judged.observed[place].records for place in more)


def _problem(
    client: Who, request: ProduceRequest, judged: JudgedRequest, names: Mapping[bytes, str]
) -> dict[str, Any] | None:
    found = _first_wrong(judged)
    if found is None:
        return None
    place, refused = found
    topic = request.topics[place[0]]
    name = topic.name if topic.name is not None else names.get(topic.topic_id or b"")
    shown = None if name is None else cut(name)
    return refusal(client, shown, topic.partitions[place[1]].index, refused, judged.held_to[place].now_ms)


def _first_wrong(judged: JudgedRequest) -> tuple[Place, Refused] | None:
    for places in (
        judged.refused,
        {place: fixed.refused for place, fixed in judged.fixed.items()},
        judged.observed,
        judged.unreadable,
    ):
        for place, refused in places.items():
            return place, refused
    return None
