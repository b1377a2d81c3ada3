"""The in-flight queue of a connection: responses leave in the order of its requests.

A request that was sent to the broker waits for the broker's response. A request that the proxy responds to itself has
its response already and waits for its turn.
"""

from collections.abc import Callable

from sluicegate.protocol.framing import Parts

Finish = Callable[[bytearray], Parts | None]
"""Turns a broker's response (a frame without its size) into what the client gets; None: the client gets nothing."""

ANY_CORRELATION_ID = -(1 << 40)
"""No int32: of an in_flight whose response has none (raw SASL tokens)."""

# Room for what most connections have in flight; a power of two, as all rooms are.
_FEWEST = 8
# A larger one is given back when it is empty.
_MOST_KEPT = 64
_ANY_NUMBER = 1 << 60


class InFlightRequest:
    """One request under way. `finish` None: the response passes as it comes. `response`: the proxy's own response.

    `closes`: close the connection at this turn. One with `response` or `closes` waits for nothing but its turn.
    `produce_version`: of a Produce request that was forwarded as it came, from the version on whose answers may name
    brokers; 0 for all others. Where its broker is timed (`sluicegate.proxy.session.request_clock`): `sent_at`, the
    request's `api_key`, and how many it stands for; 0: it is not.
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

    def finish_with(self, finish: Finish) -> None:
        """Its response passes nobody by: it becomes what `finish` makes of it."""
        self.finish = finish
        self.produce_version = 0


class InFlightTotal:
    """Of all connections together: `count` requests wait for their answers, and `most` may."""

    def __init__(self, most: int | None = None) -> None:
        self.count = 0
        self.most = _ANY_NUMBER if most is None else most

    def is_full(self) -> bool:
        """Whether no more may."""
        return self.count >= self.most


class InFlightQueue:
    """The exchanges of one connection, oldest first: a ring of `count` from `_first` on. Each counts in `total` too."""

    def __init__(self, total: InFlightTotal) -> None:
        self._total = total
        self.count = self._first = 0
        self._last_place = _FEWEST - 1
        self._ring: list[InFlightRequest | None] = [None] * _FEWEST

    def __len__(self) -> int:
        return self.count

    @property
    def room(self) -> int:
        """For how many it has memory now."""
        return len(self._ring)

    def add(self, in_flight: InFlightRequest) -> None:
        """The newest in_flight."""
        if self.count > self._last_place:
            self._make_room()
        self._ring[(self._first + self.count) & self._last_place] = in_flight
        self.count += 1
        self._total.count += 1

    def clear(self) -> None:
        """Nobody answers, and nobody is answered, any more."""
        self._total.count -= self.count
        self.count = self._first = 0
        self._last_place = _FEWEST - 1
        self._ring = [None] * _FEWEST

    def awaited(self) -> InFlightRequest | None:
        """What `pop_awaited` would say."""
        if self.count == 0:
            return None
        in_flight = self._ring[self._first]
        return None if in_flight is None or in_flight.response is not None or in_flight.closes else in_flight

    def newest(self) -> InFlightRequest | None:
        """What was added last, of a queue that is not empty."""
        return self._ring[(self._first + self.count - 1) & self._last_place]

    def is_ready(self) -> bool:
        """Whether the oldest only waits for its turn."""
        return self.count > 0 and self.awaited() is None

    def pop_awaited(self) -> InFlightRequest | None:
        """The in_flight that a broker's next response belongs to; None when the broker owes nothing."""
        return None if self.awaited() is None else self.pop()

    def pop_ready(self) -> InFlightRequest | None:
        """The oldest in_flight if it only waits for its turn."""
        return self.pop() if self.is_ready() else None

    def pop(self) -> InFlightRequest | None:
        """The oldest, of a queue that is not empty."""
        in_flight = self._ring[self._first]
        self._ring[self._first] = None
        self._first = (self._first + 1) & self._last_place
        self.count -= 1
        self._total.count -= 1
        if self.count == 0 and self._last_place >= _MOST_KEPT:
            self.clear()
        return in_flight

    def _make_room(self) -> None:
        ring = self._ring[self._first :] + self._ring[: self._first]
        self._ring = ring + [None] * len(ring)
        self._first = 0
        self._last_place = len(self._ring) - 1
