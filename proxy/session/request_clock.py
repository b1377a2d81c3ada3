"""Measures how long requests spend in the proxy, and how long the broker takes to respond."""

from collections.abc import Callable
from typing import Protocol

from sluicegate.proxy.session.in_flight import InFlightRequest


class Times(Protocol):
    """Receives requests' times in seconds. Each time represents `stands_for` requests of its API."""

    def in_proxy(self, api_key: int, seconds: float, stands_for: int, /) -> None:
        """Report the time from a request's complete arrival until the proxy forwarded it or responded."""

    def upstream(self, api_key: int, seconds: float, stands_for: int, /) -> None:
        """Report the time from forwarding a request until the broker's response began."""


class RequestClock:
    """Times one proxy's requests. `seconds` is a monotonic clock."""

    def __init__(self, seconds: Callable[[], float], times: Times) -> None:
        self.now = seconds
        self._times = times

    def sent(self, api_key: int, arrived: float, in_flight: InFlightRequest | None, stands_for: int = 1) -> None:
        """Record that a request that was complete at `arrived` was forwarded.

        `in_flight` is None if the proxy itself responded. `stands_for` is the number of similar requests that this one
        represents, including itself.
        """
        now = self.now()
        self._times.in_proxy(api_key, now - arrived, stands_for)
        if in_flight is not None:
            self.awaits(api_key, in_flight, now, stands_for)

    def awaits(self, api_key: int, in_flight: InFlightRequest, now: float, stands_for: int = 1) -> None:
        """Record that a request is forwarded at `now`."""
        in_flight.sent_at = now
        in_flight.api_key = api_key
        in_flight.stands_for = stands_for

    def response_began(self, in_flight: InFlightRequest) -> None:
        """Record that the response to a timed request begins."""
        self._times.upstream(in_flight.api_key, self.now() - in_flight.sent_at, in_flight.stands_for)
