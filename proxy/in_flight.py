"""The one queue that decides in which order answers leave a connection: that of its requests.

A request sent to the broker is an Exchange that waits for the broker's answer; one that the proxy answers itself is
an Exchange that has its answer already and waits for its turn.
"""

from collections import deque
from collections.abc import Callable

from sluicegate.protocol.framing import Parts

Finish = Callable[[bytearray], Parts | None]
"""Turns a broker's answer (a frame without its size) into what the client gets; None: the client gets nothing."""


class Exchange:
    """One request under way. `finish` None: the answer passes as it comes. `answer`: the proxy's own answer.

    `correlation_id` is None for raw SASL tokens, which have none. `closes`: close the connection at this turn. One
    with `answer` or `closes` waits for nothing but its turn. `produce_version`: of a Produce request that was forwarded
    as it came, from the version on whose answers may name brokers; 0 for all others.
    """

    def __init__(
        self,
        correlation_id: int | None = None,
        finish: Finish | None = None,
        answer: bytes | None = None,
        closes: bool = False,
        produce_version: int = 0,
    ) -> None:
        self.correlation_id = correlation_id
        self.finish = finish
        self.answer = answer
        self.closes = closes
        self.produce_version = produce_version


class InFlightQueue:
    """The exchanges of one connection, oldest first."""

    def __init__(self) -> None:
        self._exchanges: deque[Exchange] = deque()

    def __len__(self) -> int:
        return len(self._exchanges)

    def add(self, exchange: Exchange) -> None:
        """The newest exchange."""
        self._exchanges.append(exchange)

    def clear(self) -> None:
        """Nobody answers, and nobody is answered, any more."""
        self._exchanges.clear()

    def awaited(self) -> Exchange | None:
        """What `pop_awaited` would say."""
        if not self._exchanges:
            return None
        exchange = self._exchanges[0]
        return None if exchange.answer is not None or exchange.closes else exchange

    def pop_awaited(self) -> Exchange | None:
        """The exchange that a broker's next answer belongs to; None when the broker owes nothing."""
        return None if self.awaited() is None else self._exchanges.popleft()

    def pop_ready(self) -> Exchange | None:
        """The oldest exchange if it only waits for its turn."""
        if not self._exchanges:
            return None
        exchange = self._exchanges[0]
        if exchange.answer is None and not exchange.closes:
            return None
        return self._exchanges.popleft()
