"""One client connection and the one upstream connection that belongs to it.

    client bytes -> ClientSide (which request is this?) -> ProduceGate or straight on -> broker
    broker bytes -> BrokerSide (what does this answer need?) -> client

Answers leave in the order of the requests: the in-flight queue decides, nothing else. SASL, quotas, ordering and
idempotence hold by themselves, because a client's bytes never share a connection with another's.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from config.address import HostPort
from protocol.errors import SenderError
from protocol.framing import FrameReader, frame_of
from protocol.headers import CORRELATION_ID_BYTES, HEAD_BYTES
from proxy.answer_side import BrokerSide
from proxy.connection import Connection, Hold, where_frames_start
from proxy.context import ProxyContext
from proxy.identity import ClientIdentity
from proxy.in_flight import Exchange, InFlightQueue
from proxy.last_question import LAST_CORRELATION_ID, last_question
from proxy.request_side import ClientSide
from proxy.tls import principal_of, words_of
from proxy.upstream import UpstreamUnreachable, connect

# How long a side that has been told that no more will come may take to finish.
_LINGER_SECONDS = 10
_NO_FRAME = 0.0


@dataclass(frozen=True, slots=True)
class Route:
    """Where a listener leads: `label` for people, `addresses` to try in turn."""

    label: str
    addresses: Sequence[HostPort]


RouteFor = Callable[[str | None], Route]


class Session:
    """See the module. Created for each accepted connection; ends when both sides are closed."""

    def __init__(self, context: ProxyContext, route_for: RouteFor) -> None:
        """`route_for` says where the listener leads, given the host name that a TLS client asked for."""
        self.context = context
        self.route = Route("?", ())
        self._route_for = route_for
        self.queue = InFlightQueue()
        self.identity = ClientIdentity("?")
        self._loop = asyncio.get_running_loop()
        limits = context.limits
        self._max_in_flight = limits.max_in_flight
        self._requests = ClientSide(self)
        self._answers = BrokerSide(self)
        client_reader = FrameReader(self._requests, HEAD_BYTES, limits.max_frame_bytes, context.frames)
        broker_reader = FrameReader(self._answers, CORRELATION_ID_BYTES, limits.max_frame_bytes, context.frames)
        self.frames_sent: list[bytearray] = []
        self.client = Connection(self, client_reader, where_frames_start(context.read_buffer))
        self.broker = Connection(self, broker_reader, context.read_buffer)
        self._connecting: asyncio.Task[None] | None = None
        self._frame_timer: asyncio.TimerHandle | None = None
        self._frame_deadline = _NO_FRAME
        self._linger: asyncio.TimerHandle | None = None
        self._broker_open = False
        self._draining = False
        self._goodbye_due = False
        self._said_goodbye = False
        self.client.hold(Hold.CONNECTING)

    # -- what the sides use --------------------------------------------------------------------------------------

    def answer_in_turn(self, exchange: Exchange) -> None:
        """Queue an exchange that the proxy answers itself; nothing is read behind one that closes."""
        self.queue.add(exchange)
        if exchange.closes:
            self.client.hold(Hold.DRAINING)
        self.flush_ready()

    def flush_ready(self) -> None:
        """Send whatever waits only for its turn, unless a broker's answer is half sent."""
        if self.broker.mid_frame:
            return
        while (exchange := self.queue.pop_ready()) is not None:
            if exchange.closes:
                self.finish()
                return
            if exchange.answer is not None:
                self.client.write(frame_of(exchange.answer))

    def finish(self) -> None:
        """End the session once the broker has taken everything that was forwarded, as a broker closes after storing.

        The broker closes its side when it has; only then does the client see the end.
        """
        if self._broker_open and not self.broker.closed:
            self._say_goodbye_to_broker()
        else:
            self.client.close()

    # -- life ----------------------------------------------------------------------------------------------------

    def on_open(self, connection: Connection) -> None:
        if connection is self.client:
            self._learn_who_it_is()
            self.context.tally.connections_opened += 1
            self.context.sessions.add(self)
            self._connecting = self._loop.create_task(self._connect())
        else:
            self._broker_open = True
            self.client.release(Hold.CONNECTING)

    def _learn_who_it_is(self) -> None:
        self.identity.peer = self.client.peer
        handshake = self.client.tls
        if handshake is not None:
            self.identity.principal = principal_of(handshake)
        self.route = self._route_for(self.context.asked_names.of(handshake) if handshake is not None else None)

    async def _connect(self) -> None:
        context = self.context
        try:
            await connect(
                self.route.addresses, self.broker.protocol, context.upstream_tls, context.connect_timeout_seconds
            )
        except UpstreamUnreachable as error:
            self.context.log.upstream_unreachable(self.route.label, str(error))
            self.context.tally.upstream_failures += 1
            self.client.abort()
            return
        if self.client.closed:
            self.broker.abort()

    def on_bytes_taken(self, connection: Connection) -> None:
        if connection is self.client:
            if connection.mid_frame:
                self._watch_frame()
            else:
                self._frame_deadline = _NO_FRAME
            if len(self.queue) >= self._max_in_flight:
                connection.hold(Hold.IN_FLIGHT)
            return
        if self.frames_sent and connection.has_sent_all:
            self._give_back_frames()
        self.flush_ready()
        if len(self.queue) < self._max_in_flight:
            self.client.release(Hold.IN_FLIGHT)
        if self._draining:
            self._close_if_idle()

    def _give_back_frames(self) -> None:
        """The system has taken all that was forwarded: others may have the buffers it lay in."""
        for frame in self.frames_sent:
            self.context.frames.give_back(frame)
        self.frames_sent.clear()

    def on_full(self, connection: Connection, full: bool) -> None:
        other = self.client if connection is self.broker else self.broker
        if full:
            other.hold(Hold.OTHER_SIDE_FULL)
        else:
            self._requests.give_back_memory()
            other.release(Hold.OTHER_SIDE_FULL)

    def on_sender_error(self, connection: Connection, error: SenderError) -> None:
        if connection is self.client:
            self.context.log.bad_client(self.identity, self.route.label, error)
            self.context.tally.bad_clients += 1
        else:
            self.context.log.bad_broker(self.route.label, error)
        self.client.close()
        self.broker.abort()

    def on_eof(self, connection: Connection) -> None:
        if connection is self.client:
            self._say_goodbye_to_broker()
        else:
            self.client.close()
            self.broker.close()

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        if connection is self.client:
            self._requests.give_up()
            self._stop_frame_timer()
            self._say_goodbye_to_broker()
        else:
            if isinstance(error, ssl.SSLError):  # in TLS 1.3 a broker refuses a certificate behind the handshake
                self.context.log.upstream_unreachable(self.route.label, words_of(error))
            self.client.close()
        if self.client.closed and (self.broker.closed or not self._broker_open):
            self._end()

    def _end(self) -> None:
        if self._connecting is not None and not self._broker_open:
            self._connecting.cancel()
        if self._linger is not None:
            self._linger.cancel()
        self.context.ended(self)

    def _say_goodbye_to_broker(self) -> None:
        """No more requests will come; answers under way may still arrive, for a bounded time."""
        if self._said_goodbye or not self._broker_open or self.broker.closed:
            return
        if self._requests.is_busy:  # one that had arrived whole is still to be forwarded
            self._goodbye_due = True
            return
        self._said_goodbye = True
        self._linger = self._loop.call_later(_LINGER_SECONDS, self._abort)
        if self.broker.can_half_close:
            self.broker.write_eof()
        elif self._requests.may_ask:
            self.queue.add(Exchange(LAST_CORRELATION_ID, self._last_answered))
            self.broker.write(frame_of(last_question()))
        else:
            self.broker.close()

    def _last_answered(self, _answer: bytearray) -> None:
        """Brokers take a connection's requests in turn: all that came before has been dealt with."""
        self.broker.close()

    def _abort(self) -> None:
        self.client.abort()
        self.broker.abort()

    # -- a frame that never ends ---------------------------------------------------------------------------------

    def _watch_frame(self) -> None:
        """A request that was begun has to arrive whole within a time, so that nobody can hold memory for ever.

        One timer watches all frames of the connection: it is only set again when it has run out.
        """
        if self._frame_deadline == _NO_FRAME:
            self._frame_deadline = self._loop.time() + self.context.limits.frame_seconds
            if self._frame_timer is None:
                self._frame_timer = self._loop.call_at(self._frame_deadline, self._frame_time_is_up)

    def _stop_frame_timer(self) -> None:
        if self._frame_timer is not None:
            self._frame_timer.cancel()
            self._frame_timer = None

    def _frame_time_is_up(self) -> None:
        self._frame_timer = None
        if self._frame_deadline == _NO_FRAME:
            return
        if self.client.is_held:  # the wait is ours, not the client's
            self._frame_deadline = _NO_FRAME
            self._watch_frame()
        elif self._frame_deadline > self._loop.time():
            self._frame_timer = self._loop.call_at(self._frame_deadline, self._frame_time_is_up)
        else:
            error = SenderError(f"a request has not arrived whole within {self.context.limits.frame_seconds} s")
            self.on_sender_error(self.client, error)

    # -- draining ------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take no more requests, let what is in flight be answered, then close."""
        self._draining = True
        self.client.hold(Hold.DRAINING)
        self._close_if_idle()

    def close_now(self) -> None:
        """The time for draining is over."""
        self._abort()

    def _close_if_idle(self) -> None:
        if len(self.queue) == 0 and not self.broker.mid_frame and not self._requests.is_busy:
            self.finish()

    def request_settled(self) -> None:
        """A judgement that was waited for is done."""
        self._requests.give_back_memory()
        if self._goodbye_due:
            self._say_goodbye_to_broker()
        if self._draining:
            self._close_if_idle()
