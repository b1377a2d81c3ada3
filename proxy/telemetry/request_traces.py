"""Samples Produce requests for spans, on the event loop; a request that is not sampled costs a comparison.

Only requests on the slow path are sampled: all with violations, and of the others one of each topic in 5 s, because
the fast path forgets topics after that.
"""

from collections.abc import Callable, Mapping

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.telemetry.request_summary import RequestSummary, summarize
from sluicegate.validation.produce import ValidatedRequest


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
