"""Sends the client gathered responses and the proxy's own responses, in the order of the requests."""

from collections.abc import Callable

from sluicegate.protocol.framing import Parts, frame_of, size_prefix
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight import InFlightQueue, InFlightRequest
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.reports import SessionTrace

# Only this many bytes of a response are traced.
_TRACED_BYTES = 65_536
# Larger responses are written in parts, because joining tens of megabytes would delay other connections.
_JOINED_BYTES = 65_536


class Delivery:
    """Sends one session's responses.

    When it reaches a request that closes the connection, it calls `finish` to end the session.
    """

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
        """Queue a request to which the proxy itself responds."""
        self._queue.add(in_flight)
        self.flush_ready()

    def close_in_turn(self, reason: str) -> None:
        """Close the connection after the responses to all earlier requests. `reason` is for the trace."""
        if self._trace is not None:
            self._trace.session_ending(f"proxy: {reason}")
        self._client.pause(PauseReason.DRAINING)
        self.in_turn(InFlightRequest(closes=True))

    def flush_ready(self) -> None:
        """Send all responses whose turn has come, unless a broker's response has been sent in part."""
        if self._broker.mid_frame:
            return
        while (in_flight := self._queue.pop_ready()) is not None:
            if in_flight.closes:
                self._finish()
                return
            if in_flight.response is not None:
                self.deliver((in_flight.response,))

    def deliver(self, response: Parts) -> None:
        """Send the client a gathered response or one of the proxy's own."""
        size = sum(map(len, response))
        if self._trace is not None:
            self._trace.response_sent(_head_of(response), size)
        if size <= _JOINED_BYTES:
            self._client.write(frame_of(*response))
        else:
            self._client.write_parts((size_prefix(response), *response))


def _head_of(response: Parts) -> bytes:
    head = b""
    for part in response:
        head += bytes(part[: _TRACED_BYTES - len(head)])
    return head
