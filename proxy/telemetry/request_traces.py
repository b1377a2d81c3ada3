"""Samples Produce requests for spans, and summarizes them: bounded values, no record contents.

Only requests on the slow path are sampled: all with violations, and of the others one of each topic in 5 s, because
the fast path forgets topics after that. A request that is not sampled costs the event loop a comparison.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.reporting.bounded_text import cut, printable
from sluicegate.proxy.reporting.events.violation_event import ClientDetails, client_details
from sluicegate.proxy.reporting.logs.validation_lines import rejection
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.verdict import Rejected

MOST_TOPICS = 10
UNCHECKED, FORWARDED, OBSERVED, FIXED = "unchecked", "forwarded", "observed", "fixed"
MARKED, QUARANTINED, REJECTED, SEND_AGAIN = "marked", "quarantined", "rejected", "send_again"
_WORST_FIRST = (SEND_AGAIN, REJECTED, QUARANTINED, FIXED, MARKED, OBSERVED, FORWARDED, UNCHECKED)
NOT_STORED = frozenset({SEND_AGAIN, REJECTED, QUARANTINED})


class RequestSummary(NamedTuple):
    """A validated request. `verdict` is the worst of its batches, `batches` counts them by verdict. `problem`: the log
    fields of the first violation. `untraced`: requests of the kind since the last traced one. `sent_ms`: when it was
    forwarded, or the proxy responded (since the epoch). Times in seconds; `upstream_seconds` None: no broker response.
    """

    client: ClientDetails
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


def summarize(
    identity: ClientIdentity,
    request: ProduceRequest,
    validated: ValidatedRequest,
    names: Mapping[bytes, str],
    untraced: int,
    sent_ms: int,
    proxy_seconds: float,
) -> RequestSummary:
    """Return the summary of a request; `names` resolves topic ids."""
    client = client_details(identity)
    named = (topic.name_by(names) for topic in request.topics)
    topics = tuple(printable(cut(name)) for name in islice(named, MOST_TOPICS) if name is not None)
    batches = _batches(validated)
    return RequestSummary(
        client,
        topics,
        len(request.topics),
        sum(len(topic.partitions) for topic in request.topics),
        _records(validated),
        request.acks,
        request.version,
        next((verdict for verdict in _WORST_FIRST if batches.get(verdict)), UNCHECKED),
        batches,
        _problem(client, request, validated, names),
        untraced,
        sent_ms,
        proxy_seconds,
    )


def _batches(validated: ValidatedRequest) -> dict[str, int]:
    rejected, to_retry = validated.rejected, validated.to_retry
    only_observed = sum(place not in rejected and place not in to_retry for place in validated.observed)
    counts = {
        SEND_AGAIN: len(to_retry),
        QUARANTINED: sum(place in validated.quarantined for place in rejected),
        REJECTED: sum(place not in to_retry and place not in validated.quarantined for place in rejected),
        FIXED: len(validated.fixed),
        MARKED: sum(bool(marked.found) for marked in validated.marked.values()),
        OBSERVED: only_observed,
        FORWARDED: sum(
            place not in validated.fixed and place not in validated.observed and not validated.is_marked(place)
            for place in validated.accepted
        ),
        UNCHECKED: validated.unchecked + validated.exempt,
    }
    return {verdict: count for verdict, count in counts.items() if count}


def _records(validated: ValidatedRequest) -> int:
    """Return the number of records of the validated batches, by the batches' own counts."""
    count = sum(accepted.records for accepted in validated.accepted.values())
    count += sum(rejected.records for rejected in validated.rejected.values())
    more = (
        place for place in validated.observed if place not in validated.accepted and place not in validated.rejected
    )
    return count + sum(validated.observed[place][0].records for place in more)


def _problem(
    client: ClientDetails, request: ProduceRequest, validated: ValidatedRequest, names: Mapping[bytes, str]
) -> dict[str, Any] | None:
    found = _first_wrong(validated)
    if found is None:
        return None
    place, rejected = found
    topic = request.topics[place[0]]
    name = topic.name_by(names)
    shown = None if name is None else cut(name)
    return rejection(client, shown, topic.partitions[place[1]].index, rejected, validated.basis[place].now_ms)


def _first_wrong(validated: ValidatedRequest) -> tuple[Place, Rejected] | None:
    for places in (
        validated.rejected,
        {place: fixed.rejected for place, fixed in validated.fixed.items()},
        {place: marked.found[0] for place, marked in validated.marked.items() if marked.found},
        {place: found[0] for place, found in validated.observed.items()},
        validated.unreadable,
    ):
        for place, rejected in places.items():
            return place, rejected
    return None


class PerSecond:
    """A limit per second. Times in seconds, monotonic."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = float("-inf")
        self._taken = 0
        self._passed = 0

    def take(self, now: float) -> int | None:
        """Return how many were skipped since the last one, None to skip this one too."""
        if now - self._since >= 1:
            self._since, self._taken = now, 0
        if self._taken >= self._most:
            self._passed += 1
            return None
        self._taken += 1
        passed, self._passed = self._passed, 0
        return passed


_MOST_AWAITED = 1000
_TIMEOUT_SECONDS = 30.0

Keep = Callable[[RequestSummary], None]


class RequestTraces:
    """Passes sampled requests to `keep`, which never waits. `names` resolves topic ids; `now_ms` is since the epoch."""

    def __init__(self, names: Mapping[bytes, str], most_a_second: int, keep: Keep, now_ms: Callable[[], int]) -> None:
        self._names = names
        self._keep = keep
        self._now_ms = now_ms
        self._wrong = PerSecond(most_a_second)
        self._good = PerSecond(most_a_second)
        self._awaited: dict[InFlightRequest, RequestSummary] = {}

    def sent(
        self,
        identity: ClientIdentity,
        request: ProduceRequest,
        validated: ValidatedRequest,
        came: float,
        now: float,
        in_flight: InFlightRequest | None,
    ) -> None:
        """Sample a request that arrived completely at `came` and was forwarded now, or answered by the proxy.

        `in_flight` None: no broker response is expected. Seconds, monotonic.
        """
        untraced = (self._wrong if validated.basis else self._good).take(now)
        if untraced is None:
            return
        sampled = summarize(identity, request, validated, self._names, untraced, self._now_ms(), now - came)
        if in_flight is None or len(self._awaited) >= _MOST_AWAITED:
            self._keep(sampled)
        else:
            self._awaited[in_flight] = sampled

    def response_began(self, in_flight: InFlightRequest, seconds: float) -> None:
        """Note that the broker's response began, `seconds` after the request was forwarded."""
        sampled = self._awaited.pop(in_flight, None)
        if sampled is not None:
            self._keep(sampled._replace(upstream_seconds=seconds))

    def sweep(self) -> None:
        """Stop waiting for responses after 30 s; called every few seconds."""
        late = self._now_ms() - _TIMEOUT_SECONDS * 1000
        old = [in_flight for in_flight, sampled in self._awaited.items() if sampled.sent_ms < late]
        for in_flight in old:
            self._keep(self._awaited.pop(in_flight))

    def close(self) -> None:
        """Keep all sampled requests without a response, before shutdown."""
        for in_flight in list(self._awaited):
            self._keep(self._awaited.pop(in_flight))
