"""How a session ends: what has come is dealt with and answered, the broker is told, then both are closed."""

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

# The id of the probe that is sent on a TLS connection to a broker before it is closed.
_LAST_CORRELATION_ID = -2
_PROBE_VERSION = 0  # has no body
# How long a side that has been told that no more will come may take to finish.
_LINGER_SECONDS = 10
_DRAINING = Stage.DRAINING  # named here, because looking an enum's member up takes longer than the comparison


class SessionCloser:
    """The end of one session."""

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
        """Take no more requests, let what is in flight be answered, then close."""
        self._lifecycle.apply(LifecycleEvent.DRAIN_REQUESTED)
        self._take_no_more()
        self.close_if_idle()

    def on_client_read(self) -> None:
        """That may have been the end of the last request that is taken."""
        if self._lifecycle.stage is _DRAINING:
            self._take_no_more()

    def _take_no_more(self) -> None:
        """A request that is being passed on comes to its end first: to its beginning alone a broker says nothing."""
        if not self._client.mid_pass:
            self._client.pause(PauseReason.DRAINING)

    def close_after_responses(self) -> None:
        """A broker has answered all that came before when it reads what it closes a connection for."""
        if not self._client.closed:
            self._begin_to_linger()
            self.drain()

    def close_if_idle(self) -> None:
        """Nothing is in flight any more, or is about to be?"""
        if len(self._queue) == 0 and not self._broker.mid_frame and not self._runner.is_busy:
            self.finish()

    def settled(self) -> None:
        """A validation that was waited for is done, or the broker has answered."""
        stage = self._lifecycle.stage
        if stage is Stage.LEAVING:
            self.end_requests()
        elif stage is Stage.DRAINING:
            self.close_if_idle()

    def finish(self) -> None:
        """End the session once the broker has taken everything that was forwarded, as a broker closes after storing.

        The broker closes its side when it has; only then does the client see the end.
        """
        if self._broker.is_open:
            self.end_requests()
        else:
            self._client.close()

    def end_requests(self) -> None:
        """No more requests will come; answers under way may still arrive, for a bounded time."""
        if not self._broker.is_open:
            return
        if self._runner.is_busy:  # one that had arrived whole is still to be forwarded
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
        """Whether a request of the proxy's own may follow what was forwarded: no frame is half sent, no login begun."""
        return not self._client.mid_pass and self._sasl.stage is SaslStage.REQUESTS

    def end(self) -> None:
        """Both have gone."""
        self._lifecycle.apply(LifecycleEvent.BOTH_CLOSED)
        if self._linger is not None:
            self._linger.cancel()

    def _begin_to_linger(self) -> None:
        if self._linger is None:
            self._linger = self._loop.call_later(_LINGER_SECONDS, self._runner.cut_off)

    def _on_probe_response(self, _response: bytearray) -> None:
        """Brokers take a connection's requests in turn: all that came before has been dealt with."""
        self._broker.close()


def _close_probe() -> bytes:
    """An ApiVersions request (a frame without its size), sent on a TLS connection to a broker before it is closed.

    TLS cannot be closed in one direction, and closing both may throw away what the broker has not read yet. A broker
    takes the requests of a connection in turn, so after its response to this one all before it has been dealt with.
    """
    header_version = APIS[ApiKey.API_VERSIONS].request_header_version(_PROBE_VERSION)
    return build_request_header(ApiKey.API_VERSIONS, _PROBE_VERSION, _LAST_CORRELATION_ID, "sluicegate", header_version)
