"""Ends a session: completes the in-flight requests, half-closes the broker connection, then closes both sides."""

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.proxy.session.client.identity import SaslStage, SaslTracker
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight import InFlightQueue, InFlightRequest
from sluicegate.proxy.session.lifecycle import Lifecycle, LifecycleEvent, Stage
from sluicegate.proxy.session.outlets import LoopCalls, Timer
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.request_runner import RequestRunner

# The close probe's correlation id.
_LAST_CORRELATION_ID = -2
_PROBE_VERSION = 0  # this version has no request body
# After one side has ended its output, the other side has this time to finish.
_LINGER_SECONDS = 10
_DRAINING = Stage.DRAINING  # a global, because looking up an enum member costs more than the comparison


class SessionCloser:
    """Ends one session."""

    def __init__(
        self,
        life: Lifecycle,
        client: Connection,
        broker: Connection,
        runner: RequestRunner,
        sasl: SaslTracker,
        queue: InFlightQueue,
        loop: LoopCalls,
    ) -> None:
        self._lifecycle = life
        self._client = client
        self._broker = broker
        self._runner = runner
        self._sasl = sasl
        self._queue = queue
        self._loop = loop
        self._linger: Timer | None = None

    def drain(self) -> None:
        """Stop reading requests, complete those in flight, then close."""
        self._lifecycle.apply(LifecycleEvent.DRAIN_REQUESTED)
        self._take_no_more()
        self.close_if_idle()

    def on_client_read(self) -> None:
        """Check after each read from the client whether the last request has been read."""
        if self._lifecycle.stage is _DRAINING:
            self._take_no_more()

    def _take_no_more(self) -> None:
        """Stop reading after the current request.

        A partial request is read completely first, because a broker would not respond to it.
        """
        if not self._client.mid_pass:
            self._client.pause(PauseReason.DRAINING)

    def close_after_responses(self) -> None:
        """Drain within a time limit. A broker, too, responds to earlier requests before it closes."""
        if not self._client.closed:
            self._begin_to_linger()
            self.drain()

    def close_if_idle(self) -> None:
        """Close if no request is in flight or being handled."""
        if len(self._queue) == 0 and not self._broker.mid_frame and not self._runner.is_busy:
            self.finish()

    def settled(self) -> None:
        """Continue closing after a request was handled or the broker has responded."""
        stage = self._lifecycle.stage
        if stage is Stage.HALF_CLOSED:
            self.end_requests()
        elif stage is Stage.DRAINING:
            self.close_if_idle()

    def finish(self) -> None:
        """End the session after the broker has read everything that was forwarded.

        The broker closes its side first, and then the proxy closes the client's side.
        """
        if self._broker.is_open:
            self.end_requests()
        else:
            self._client.close()

    def end_requests(self) -> None:
        """End the output to the broker. Its responses may still arrive for a limited time."""
        if not self._broker.is_open:
            return
        if self._runner.is_busy:  # a complete request has not been forwarded yet
            self._lifecycle.apply(LifecycleEvent.LAST_REQUEST_BUSY)
            return
        if not self._lifecycle.apply(LifecycleEvent.REQUESTS_ENDED):
            return
        self._begin_to_linger()
        if self._broker.can_half_close:
            self._broker.write_eof()
        elif self._may_probe:
            self._queue.add(InFlightRequest(_LAST_CORRELATION_ID, self._on_probe_response))
            self._broker.write(frame_of(_close_probe()))
        else:
            self._broker.close()

    @property
    def _may_probe(self) -> bool:
        """Whether the proxy may send a probe: no frame is forwarded in part, and no login is in progress."""
        return not self._client.mid_pass and self._sasl.stage is SaslStage.REQUESTS

    def end(self) -> None:
        """Stop the timer after both connections have closed."""
        self._lifecycle.apply(LifecycleEvent.BOTH_CLOSED)
        if self._linger is not None:
            self._linger.cancel()

    def _begin_to_linger(self) -> None:
        if self._linger is None:
            self._linger = self._loop.call_later(_LINGER_SECONDS, self._runner.cut_off)

    def _on_probe_response(self, _response: bytearray) -> None:
        """Close the broker connection. Brokers handle requests in order, so all earlier requests are complete."""
        self._broker.close()


def _close_probe() -> bytes:
    """Return an ApiVersions request (a frame without its size) to send before a TLS connection to a broker is closed.

    TLS cannot be half-closed, and a full close may discard data that the broker has not read. A broker handles requests
    in order, so its response to the probe shows that all earlier requests are complete.
    """
    header_version = APIS[ApiKey.API_VERSIONS].request_header_version(_PROBE_VERSION)
    return build_request_header(ApiKey.API_VERSIONS, _PROBE_VERSION, _LAST_CORRELATION_ID, "sluicegate", header_version)
