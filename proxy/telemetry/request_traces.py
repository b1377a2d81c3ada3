"""Picks Produce requests that spans are made of, on the event loop: what is not picked costs a comparison.

Only what the slow path takes is seen. That is every request in which something is wrong, and of the others one of each
topic in five seconds, because the fast path forgets topics after that.
"""

from collections.abc import Callable, Mapping

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.telemetry.request_summary import RequestSummary, seen
from sluicegate.validation.produce import ValidatedRequest


class PerSecond:
    """The time is handed in, in seconds that only go forward."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = float("-inf")
        self._taken = 0
        self._passed = 0

    def take(self, now: float) -> int | None:
        """How many were passed over since the last that was taken; None: this one is passed over too."""
        if now - self._since >= 1:
            self._since, self._taken = now, 0
        if self._taken >= self._most:
            self._passed += 1
            return None
        self._taken += 1
        passed, self._passed = self._passed, 0
        return passed


_MOST_AWAITED = 1000
_PATIENCE_SECONDS = 30.0

Keep = Callable[[RequestSummary], None]


class RequestTraces:
    """Hands what it picks to `keep`, which never waits. `names` resolves topic ids; `now_ms` is since the epoch."""

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
        """A request that came whole at `came` has just been sent on, or answered here (`in_flight` None: no broker's
        answer is waited for). Seconds, monotonic.
        """
        untraced = (self._wrong if validated.held_to else self._good).take(now)
        if untraced is None:
            return
        picked = seen(identity, request, validated, self._names, untraced, self._now_ms(), now - came)
        if in_flight is None or len(self._awaited) >= _MOST_AWAITED:
            self._keep(picked)
        else:
            self._awaited[in_flight] = picked

    def response_began(self, in_flight: InFlightRequest, seconds: float) -> None:
        """The broker's answer to a request began to arrive, so long after it was sent."""
        picked = self._awaited.pop(in_flight, None)
        if picked is not None:
            self._keep(picked._replace(upstream_seconds=seconds))

    def sweep(self) -> None:
        """Give up waiting for what nobody has answered in 30 s; called every few seconds."""
        late = self._now_ms() - _PATIENCE_SECONDS * 1000
        old = [in_flight for in_flight, picked in self._awaited.items() if picked.sent_ms < late]
        for in_flight in old:
            self._keep(self._awaited.pop(in_flight))

    def close(self) -> None:
        """No answer will come any more."""
        for in_flight in list(self._awaited):
            self._keep(self._awaited.pop(in_flight))
