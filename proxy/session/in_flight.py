"""The in-flight queue of a connection: responses leave in the order of its requests.

A request that was sent to the broker waits for the broker's response. A request to which the proxy responds has its
response already and waits for its turn.
"""

from collections.abc import Callable
from typing import Any

from sluicegate.protocol.framing import Parts

Finish = Callable[[bytearray], Parts | None]
"""Returns the client's response for a broker's response (a frame without its size); None: the client gets none."""

ANY_CORRELATION_ID = -(1 << 40)
"""Outside the int32 range, for responses without a correlation id (raw SASL tokens)."""

WALKED = -1
"""Instead of the position of an error code: `sluicegate.protocol.response_walks.codes_in` finds them all."""

# The initial capacity, enough for most connections; capacities are powers of two.
_FEWEST = 8
# A larger ring is released when it is empty.
_MOST_KEPT = 64
_ANY_NUMBER = 1 << 60


class InFlightRequest:
    """One request in flight. `finish` None: the response passes unchanged. `response`: the proxy's own response.

    `closes`: the connection closes at this turn. A request with `response` or `closes` waits only for its turn.
    `produce_version`: the version of a Produce request that was forwarded unchanged and whose response may name
    brokers; 0 for all others. `sent_at` and `stands_for` (the number of requests that it represents; 0: not timed) are
    set if the broker is timed (`sluicegate.proxy.session.request_clock`). `code_at`: the position of the error code in
    the response's frame; WALKED if it has several; 0 if they are not read here. `version` is the request's if WALKED.
    `ended` is called instead of `finish` if no response comes before the session ends.

    Of a Produce request on the fast path: `batches` validated ones, which count for `sender` and for `topics`, a
    BatchTally or a list of them with their numbers of batches (`sluicegate.validation.ordinary`). `sender` is None for
    all other requests.
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
        """Set the function that finishes the response, which no longer passes unchanged."""
        self.finish = finish
        self.produce_version = 0


class InFlightTotal:
    """Counts the requests in flight on all connections; at most `most`."""

    def __init__(self, most: int | None = None) -> None:
        self.count = 0
        self.most = _ANY_NUMBER if most is None else most

    def is_full(self) -> bool:
        """Return whether the limit is reached."""
        return self.count >= self.most


class InFlightQueue:
    """The requests in flight of one connection, oldest first, in a ring that starts at `_first`; also in `total`."""

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
        """Drop all requests at the end of the session; call `unanswered` with each of them, the oldest first."""
        waiting = [in_flight for in_flight in self._in_order() if in_flight is not None]
        self.clear()
        for in_flight in waiting:
            unanswered(in_flight)

    def clear(self) -> None:
        """Drop all requests."""
        self._total.count -= self.count
        self.count = self._first = 0
        self._last_place = _FEWEST - 1
        self._ring = [None] * _FEWEST

    def awaited(self) -> InFlightRequest | None:
        """Return the same request as `pop_awaited`, without removing it."""
        if self.count == 0:
            return None
        in_flight = self._ring[self._first]
        return None if in_flight is None or in_flight.response is not None or in_flight.closes else in_flight

    def newest(self) -> InFlightRequest | None:
        """Return the newest request; the queue must not be empty."""
        return self._ring[(self._first + self.count - 1) & self._last_place]

    def is_ready(self) -> bool:
        """Return whether the oldest request waits only for its turn."""
        return self.count > 0 and self.awaited() is None

    def pop_awaited(self) -> InFlightRequest | None:
        """Remove and return the request for the broker's next response; return None if there is none."""
        return None if self.awaited() is None else self.pop()

    def pop_ready(self) -> InFlightRequest | None:
        """Remove and return the oldest request if it waits only for its turn."""
        return self.pop() if self.is_ready() else None

    def pop(self) -> InFlightRequest | None:
        """Remove and return the oldest request; the queue must not be empty."""
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
