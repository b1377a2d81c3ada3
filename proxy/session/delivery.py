"""What the client is sent besides what passes: answers that were gathered, and the proxy's own, each in its turn."""

from collections.abc import Callable

from sluicegate.protocol.framing import Parts, frame_of, size_prefix
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight import InFlightQueue, InFlightRequest
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.reports import SessionTrace

# How much of an answer is looked into for its codes.
_TRACED_BYTES = 65_536
# Larger answers are sent as they lie: putting together tens of megabytes keeps others waiting.
_JOINED_BYTES = 65_536


class Delivery:
    """Of one session. `finish` ends it at the turn of an in_flight that closes."""

    def __init__(
        self,
        client: Connection,
        broker: Connection,
        queue: InFlightQueue,
        finish: Callable[[], None],
        trace: SessionTrace | None,
    ) -> None:
        self._client = client
        self._broker = broker
        self._queue = queue
        self._finish = finish
        self._trace = trace

    def in_turn(self, in_flight: InFlightRequest) -> None:
        """Queue an in_flight that the proxy answers itself; nothing is read behind one that closes."""
        self._queue.add(in_flight)
        if in_flight.closes:
            if self._trace is not None:
                self._trace.ends("proxy: a rejection that acks=0 leaves no response for")
            self._client.pause(PauseReason.DRAINING)
        self.flush_ready()

    def flush_ready(self) -> None:
        """Send whatever waits only for its turn, unless a broker's answer is half sent."""
        if self._broker.mid_frame:
            return
        while (in_flight := self._queue.pop_ready()) is not None:
            if in_flight.closes:
                self._finish()
                return
            if in_flight.response is not None:
                self.deliver((in_flight.response,))

    def deliver(self, response: Parts) -> None:
        """Send the client an answer that was gathered, or made here."""
        size = sum(map(len, response))
        if self._trace is not None:
            self._trace.response(_head_of(response), size)
        if size <= _JOINED_BYTES:
            self._client.write(frame_of(*response))
        else:
            self._client.write_parts((size_prefix(response), *response))


def _head_of(response: Parts) -> bytes:
    head = b""
    for part in response:
        head += bytes(part[: _TRACED_BYTES - len(head)])
    return head
