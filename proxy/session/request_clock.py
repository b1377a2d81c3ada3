"""How long requests take: in the proxy, and until their broker answers. The time is handed in."""

from collections.abc import Callable
from typing import Protocol

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.validation.produce import ValidatedRequest


class Times(Protocol):
    """Is told how long requests took, in seconds; each stands for so many of its API."""

    def in_proxy(self, api_key: int, seconds: float, stands_for: int, /) -> None:
        """From when it had come whole until it was sent on, or answered by the proxy."""

    def upstream(self, api_key: int, seconds: float, stands_for: int, /) -> None:
        """From when it was sent on until its broker's answer began."""


class RequestTracer(Protocol):
    """Is shown Produce requests as they leave, and how long their brokers took. Seconds, of one monotonic clock."""

    def sent(
        self,
        identity: ClientIdentity,
        request: ProduceRequest,
        validated: ValidatedRequest,
        came: float,
        now: float,
        in_flight: InFlightRequest | None,
        /,
    ) -> None:
        """One that came whole at `came` was sent on, or answered (`in_flight` None: no broker's answer is awaited)."""

    def response_began(self, in_flight: InFlightRequest, seconds: float, /) -> None:
        """The broker's answer to a request, traced or not, began so long after it was sent."""


class RequestClock:
    """Of one proxy. `seconds` is a monotonic clock; `times` is told what it shows, and `traces` of answers."""

    def __init__(self, seconds: Callable[[], float], times: Times, traces: RequestTracer | None = None) -> None:
        self.now = seconds
        self._times = times
        self._traces = traces

    def sent(self, api_key: int, came: float, in_flight: InFlightRequest | None, stands_for: int = 1) -> None:
        """A request that came whole at `came` has just been sent on, or answered here (`in_flight` None: no broker's
        answer is waited for). `stands_for`: how many like it, of which only this one is timed, itself included.
        """
        now = self.now()
        self._times.in_proxy(api_key, now - came, stands_for)
        if in_flight is not None:
            self.awaits(api_key, in_flight, now, stands_for)

    def awaits(self, api_key: int, in_flight: InFlightRequest, now: float, stands_for: int = 1) -> None:
        """A request goes to a broker `now`."""
        in_flight.sent_at = now
        in_flight.api_key = api_key
        in_flight.stands_for = stands_for

    def response_began(self, in_flight: InFlightRequest) -> None:
        """A broker's answer begins, to a request that is timed."""
        seconds = self.now() - in_flight.sent_at
        self._times.upstream(in_flight.api_key, seconds, in_flight.stands_for)
        if self._traces is not None:
            self._traces.response_began(in_flight, seconds)
