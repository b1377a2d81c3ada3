"""A connection's in-flight queue, which sends responses in the order of the requests.

A request that was sent to the broker waits for the broker's response. A request to which the proxy itself responds
already has its response and waits only for its turn.
"""

from collections.abc import Callable
from typing import Any

from sluicegate.protocol.framing import Parts

Finish = Callable[[bytearray], Parts | None]
"""Returns the client's response for a broker's response, which is a frame without its size.

The result is None if the client gets no response.
"""

ANY_CORRELATION_ID = -(1 << 40)
"""A number outside the int32 range, for responses without a correlation id (raw SASL tokens)."""

WALKED = -1
"""Takes the place of an error code's position if a response has several codes.

`sluicegate.protocol.response_walks.codes_in` finds them all.
"""

# The initial capacity, which is enough for most connections. Capacities are powers of two.
_FEWEST = 8
# When a larger ring is empty, a small one replaces it.
_MOST_KEPT = 64
_ANY_NUMBER = 1 << 60


class InFlightRequest:
    """One request in flight.

    If `finish` is None, the response is forwarded unchanged. `response` is the proxy's own response. If `closes` is
    set, the connection closes at this request's turn. A request with `response` or `closes` waits only for its turn.

    `produce_version` is the version of a Produce request that was forwarded unchanged and whose response may name
    brokers. It is 0 for all other requests. `sent_at` (s) is set if the broker's response time is measured
    (`sluicegate.proxy.session.request_clock`). `stands_for` is the number of requests that the measurement represents,
    or 0 if there is none. `code_at` is the position of the error code in the response's frame, WALKED if the response
    has several codes, or 0 if no code is read. If it is WALKED, `version` is the request's version. If the session ends
    before a response arrives, `ended` is called instead of `finish`.

    The last three attributes belong to Produce requests on the fast path. `batches` is the number of validated batches,
    which are counted for `sender` and `topics`. `topics` is a BatchTally, or a list of pairs of a BatchTally and its
    number of batches (`sluicegate.validation.ordinary`). `sender` is None for all other requests.
    """

    def __init__(
        self,
        correlation_id: int = ANY_CORRELATION_ID,
        finish: Finish | None = None,
        response: bytes | None = None,
        closes: bool = False,
        produce_version: int = 0,
    ) -> None:
        self.correlation_id = correlation_id
        self.finish = finish
        self.response = response
        self.closes = closes
        self.produce_version = produce_version
        self.sent_at = 0.0
        self.api_key = 0
        self.stands_for = 0
        self.code_at = 0
        self.version = produce_version
        self.ended: Callable[[], None] | None = None
        self.sender: Any = None
        self.topics: Any = None
        self.batches = 0

    def finish_with(self, finish: Finish) -> None:
        """Set the function that finishes the response, which is then no longer forwarded unchanged."""
        self.finish = finish
        self.produce_version = 0


class InFlightTotal:
    """Counts the in-flight requests on all connections. `most` is their limit, or None for no limit."""

    def __init__(self, most: int | None = None) -> None:
        self.count = 0
        self.most = _ANY_NUMBER if most is None else most

    def is_full(self) -> bool:
        """Return whether the limit is reached."""
        return self.count >= self.most


class InFlightQueue:
    """One connection's in-flight requests, oldest first, in a ring buffer that starts at `_first`.

    The requests are also counted in `total`.
    """

    def __init__(self, total: InFlightTotal) -> None:
        self._total = total
        self.count = self._first = 0
        self._last_place = _FEWEST - 1
        self._ring: list[InFlightRequest | None] = [None] * _FEWEST

    def __len__(self) -> int:
        return self.count

    @property
    def capacity(self) -> int:
        """The current capacity."""
        return len(self._ring)

    def add(self, in_flight: InFlightRequest) -> None:
        """Append a request."""
        if self.count > self._last_place:
            self._make_room()
        self._ring[(self._first + self.count) & self._last_place] = in_flight
        self.count += 1
        self._total.count += 1

    def end(self, unanswered: Callable[[InFlightRequest], None]) -> None:
        """Remove all requests at the end of the session. Call `unanswered` with each one, oldest first."""
        waiting = [in_flight for in_flight in self._in_order() if in_flight is not None]
        self.clear()
        for in_flight in waiting:
            unanswered(in_flight)

    def clear(self) -> None:
        """Remove all requests."""
        self._total.count -= self.count
        self.count = self._first = 0
        self._last_place = _FEWEST - 1
        self._ring = [None] * _FEWEST

    def awaited(self) -> InFlightRequest | None:
        """Return the request that `pop_awaited` would return, without removing it."""
        if self.count == 0:
            return None
        in_flight = self._ring[self._first]
        return None if in_flight is None or in_flight.response is not None or in_flight.closes else in_flight

    def newest(self) -> InFlightRequest | None:
        """Return the newest request. The queue must not be empty."""
        return self._ring[(self._first + self.count - 1) & self._last_place]

    def is_ready(self) -> bool:
        """Return whether the oldest request waits only for its turn."""
        return self.count > 0 and self.awaited() is None

    def pop_awaited(self) -> InFlightRequest | None:
        """Remove and return the oldest request if it awaits the broker's next response. Otherwise return None."""
        return None if self.awaited() is None else self.pop()

    def pop_ready(self) -> InFlightRequest | None:
        """Remove and return the oldest request if it waits only for its turn. Otherwise return None."""
        return self.pop() if self.is_ready() else None

    def pop(self) -> InFlightRequest | None:
        """Remove and return the oldest request. The queue must not be empty."""
        in_flight = self._ring[self._first]
        self._ring[self._first] = None
        self._first = (self._first + 1) & self._last_place
        self.count -= 1
        self._total.count -= 1
        if self.count == 0 and self._last_place >= _MOST_KEPT:
            self.clear()
        return in_flight

    def _make_room(self) -> None:
        ring = self._in_order()
        self._ring = ring + [None] * len(ring)
        self._first = 0
        self._last_place = len(self._ring) - 1

    def _in_order(self) -> list[InFlightRequest | None]:
        return self._ring[self._first :] + self._ring[: self._first]
