"""What the client is sent besides what passes: answers that were gathered, and the proxy's own, each in its turn."""

from collections.abc import Callable

from sluicegate.protocol.framing import Parts, frame_of, size_prefix
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight import Exchange, InFlightQueue
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.reports import Trace

# How much of an answer is looked into for its codes.
_TRACED_BYTES = 65_536
# Larger answers are sent as they lie: putting together tens of megabytes keeps others waiting.
_JOINED_BYTES = 65_536


class Delivery:
    """Of one session. `finish` ends it at the turn of an exchange that closes."""

    def __init__(
        self,
        client: Connection,
        broker: Connection,
        queue: InFlightQueue,
        finish: Callable[[], None],
        trace: Trace | None,
    ) -> None:
        self._client = client
        self._broker = broker
        self._queue = queue
        self._finish = finish
        self._trace = trace

    def in_turn(self, exchange: Exchange) -> None:
        """Queue an exchange that the proxy answers itself; nothing is read behind one that closes."""
        self._queue.add(exchange)
        if exchange.closes:
            if self._trace is not None:
                self._trace.ends("proxy: a rejection that acks=0 leaves no answer for")
            self._client.pause(PauseReason.DRAINING)
        self.flush_ready()

    def flush_ready(self) -> None:
        """Send whatever waits only for its turn, unless a broker's answer is half sent."""
        if self._broker.mid_frame:
            return
        while (exchange := self._queue.pop_ready()) is not None:
            if exchange.closes:
                self._finish()
                return
            if exchange.answer is not None:
                self.deliver((exchange.answer,))

    def deliver(self, answer: Parts) -> None:
        """Send the client an answer that was gathered, or made here."""
        size = sum(map(len, answer))
        if self._trace is not None:
            self._trace.answered(_head_of(answer), size)
        if size <= _JOINED_BYTES:
            self._client.write(frame_of(*answer))
        else:
            self._client.write_parts((size_prefix(answer), *answer))


def _head_of(answer: Parts) -> bytes:
    head = b""
    for part in answer:
        head += bytes(part[: _TRACED_BYTES - len(head)])
    return head
