"""Samples Produce requests for spans, and summarizes them with bounded values and without record contents.

Only requests on the slow path are sampled: all requests with violations, and one other request per topic in 5 s,
because the fast path forgets topics after that time. A request that is not sampled costs the event loop one comparison.
"""

import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from sluicegate.proxy.reporting.bounded_text import cut, printable
from sluicegate.proxy.reporting.logs.validation_lines import finding_details
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import RequestOutcome
from sluicegate.validation.outcome import Outcome

MOST_TOPICS = 10
NOT_ACCEPTED = frozenset({Outcome.REJECTED.value, Outcome.RESEND.value})
_WORST_FIRST = (Outcome.REJECTED, Outcome.RESEND, Outcome.UNKNOWN)
_NOT_VALIDATED = "not_validated"


class RequestSummary(NamedTuple):
    """A Produce request's summary.

    `outcome` is the worst outcome of its batches. `batches` counts them by outcome, and also counts batches without
    validation as `not_validated`. `problem` contains the log fields of the first violation. `untraced` is the number of
    similar requests since the last traced one. `sent_ms`, `proxy_seconds` and `upstream_seconds` have the same meaning
    as in `RequestOutcome`.
    """

    client: ClientDetails
    topics: tuple[str, ...]
    topic_count: int
    partition_count: int
    records: int
    acks: int
    version: int
    outcome: str
    batches: dict[str, int]
    problem: dict[str, Any] | None
    untraced: int
    sent_ms: int
    proxy_seconds: float
    upstream_seconds: float | None = None


def summarize(request: RequestOutcome, untraced: int) -> RequestSummary:
    """Summarize a request."""
    topics = tuple(printable(cut(name)) for name in islice(request.topics, MOST_TOPICS) if name is not None)
    outcomes = Counter(batch.outcome for batch in request.batches)
    batches = {outcome.value: count for outcome, count in outcomes.items()}
    not_validated = sum(not batch.is_validated for batch in request.batches)
    return RequestSummary(
        request.client,
        topics,
        len(request.topics),
        len(request.batches),
        sum(batch.records for batch in request.batches if batch.is_validated),
        request.acks,
        request.version,
        next((outcome for outcome in _WORST_FIRST if outcomes[outcome]), Outcome.ACCEPTED).value,
        batches | {_NOT_VALIDATED: not_validated} if not_validated else batches,
        _problem(request),
        untraced,
        request.sent_ms,
        request.proxy_seconds,
        request.upstream_seconds,
    )


def _problem(request: RequestOutcome) -> dict[str, Any] | None:
    """Return the fields of the first violation. Violations in batches that were not accepted come first."""
    reported = [batch for batch in request.batches if batch.basis is not None and (batch.findings or batch.unreadable)]
    if not reported:
        return None
    batch = next((one for one in reported if one.outcome.value in NOT_ACCEPTED and one.findings), reported[0])
    finding = batch.findings[0].finding if batch.findings else batch.unreadable
    assert finding is not None
    assert batch.basis is not None
    shown = None if batch.topic is None else cut(batch.topic)
    return finding_details(request.client, shown, batch, finding, batch.basis.now_ms)


class PerSecond:
    """A rate limit per second. Times are monotonic, in seconds."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = float("-inf")
        self._taken = 0
        self._passed = 0

    def take(self, now: float) -> int | None:
        """Return the number of skipped calls since the last accepted one. Return None if this call is skipped too."""
        if now - self._since >= 1:
            self._since, self._taken = now, 0
        if self._taken >= self._most:
            self._passed += 1
            return None
        self._taken += 1
        passed, self._passed = self._passed, 0
        return passed


Keep = Callable[[RequestSummary], None]


class RequestTraces:
    """Passes sampled requests to `keep`, which never waits."""

    def __init__(self, most_a_second: int, keep: Keep, seconds: Callable[[], float] = time.monotonic) -> None:
        self._keep = keep
        self._seconds = seconds
        self._wrong = PerSecond(most_a_second)
        self._good = PerSecond(most_a_second)

    def request_settled(self, request: RequestOutcome) -> None:
        """Sample a request once its outcome is known."""
        is_wrong = any(batch.is_reported for batch in request.batches)
        untraced = (self._wrong if is_wrong else self._good).take(self._seconds())
        if untraced is not None:
            self._keep(summarize(request, untraced))
