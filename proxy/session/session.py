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
from functools import partial

from sluicegate.config.address import HostPort
from sluicegate.protocol.errors import SenderError, UnknownApi
from sluicegate.protocol.framing import FrameHandler, FrameReader, Parts, frame_of, size_prefix
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, HEAD_BYTES
from sluicegate.proxy.judgement.turns import Account
from sluicegate.proxy.network.connection import Connection, Hold, where_frames_start
from sluicegate.proxy.network.tls import principal_of, words_of
from sluicegate.proxy.network.upstream import UpstreamUnreachable, connect
from sluicegate.proxy.process.context import ProxyContext
from sluicegate.proxy.reporting.connection_trace import ConnectionTrace
from sluicegate.proxy.session.answer_side import BrokerSide
from sluicegate.proxy.session.client_text import client_text
from sluicegate.proxy.session.deadlines import Deadlines, Overdue, Seen
from sluicegate.proxy.session.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import Exchange, InFlightQueue
from sluicegate.proxy.session.lanes import NO_LANES, Lanes, lanes_of
from sluicegate.proxy.session.last_question import LAST_CORRELATION_ID, last_question
from sluicegate.proxy.session.request_side import ClientSide
from sluicegate.proxy.session.traced_sides import TracedAnswers, TracedRequests

# How long a side that has been told that no more will come may take to finish.
_LINGER_SECONDS = 10
# Who brings as much at once lets others go first where the loop is late.
_MUCH_BYTES = 16 * 1024
# How long a client that asks for what was never offered waits before it is disconnected; as a broker lets clients wait
# whose login has failed (connection.failed.authentication.delay.ms).
_TURNED_AWAY_SECONDS = 0.1
# How much of an answer is looked into for its codes.
_TRACED_BYTES = 65_536
# Larger answers are sent as they lie: putting together tens of megabytes keeps others waiting.
_JOINED_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Route:
    """Where a listener leads: `label` for people, `addresses` to try in turn."""

    label: str
    addresses: Sequence[HostPort]


RouteFor = Callable[[str | None], Route]


class Session:
    """See the module. Created for each accepted connection; ends when both sides are closed."""

    def __init__(self, context: ProxyContext, route_for: RouteFor, told_peer: str | None = None) -> None:
        """`route_for` says where the listener leads, given the host name that a TLS client asked for; `told_peer` is
        the client's address where a load balancer has told it.
        """
        self.context = context
        self.route = Route("?", ())
        self._route_for = route_for
        self.queue = InFlightQueue()
        self.identity = ClientIdentity("?")
        self.account = Account()
        self._loop = asyncio.get_running_loop()
        limits = context.limits
        self._max_in_flight = limits.max_in_flight
        self._deadlines = Deadlines(limits.frame_seconds, limits.idle_seconds)
        self._requests = ClientSide(self)
        self._answers = BrokerSide(self)
        self._trace = context.tracing.begin()
        requests, answers = self._sides()
        from_client, from_broker = where_frames_start(context.read_buffer), context.read_buffer
        lanes: Lanes = lanes_of(self, self._requests, from_client, from_broker) if self._trace is None else NO_LANES
        self.fast_requests, fast_answers = lanes
        client_reader = FrameReader(requests, HEAD_BYTES, limits.max_frame_bytes, context.frames, self.fast_requests)
        broker_reader = FrameReader(answers, CORRELATION_ID_BYTES, limits.max_frame_bytes, context.frames, fast_answers)
        self._frames_sent: list[bytearray] = []
        self._told_peer = told_peer
        self.client = Connection(self, client_reader, from_client)
        self.broker = Connection(self, broker_reader, from_broker)
        if self.fast_requests is not None and fast_answers is not None:
            self.fast_requests.lead(self.client, self.broker, self.turn_is_over)
            fast_answers.lead(self.client)
        if self._trace is not None:
            self.client.tell_holds(partial(_trace_hold, self._trace, "client"))
            self.broker.tell_holds(partial(_trace_hold, self._trace, "broker"))
        self._has_begun = False
        self._connecting: asyncio.Task[None] | None = None
        self._address: str | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._ends_upstream: tuple[str, str] | None = None
        self._broker_open = False
        self._draining = False
        self._goodbye_due = False
        self._said_goodbye = False
        self._has_ended = False

    def _sides(self) -> tuple[FrameHandler, FrameHandler]:
        if self._trace is None:
            return self._requests, self._answers
        return (
            TracedRequests(self._requests, self.identity, self._trace),
            TracedAnswers(self._answers, self.identity, self._trace),
        )

    def _ends(self, by: str) -> None:
        if self._trace is not None:
            self._trace.ends(by)

    # -- what the sides use --------------------------------------------------------------------------------------

    def answer_in_turn(self, exchange: Exchange) -> None:
        """Queue an exchange that the proxy answers itself; nothing is read behind one that closes."""
        self.queue.add(exchange)
        if exchange.closes:
            self._ends("proxy: a refusal that acks=0 leaves no answer for")
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
                self.deliver((exchange.answer,))

    def deliver(self, answer: Parts) -> None:
        """Send the client an answer that was gathered, or made here."""
        size = sum(map(len, answer))
        if self._trace is not None:
            self._trace.answered(_head_of(answer), size)
        if size <= _JOINED_BYTES:
            self.client.write(frame_of(*answer))
        else:
            self.client.write_parts((size_prefix(answer), *answer))

    def begin(self, head: bytes) -> None:
        """The client has begun a request: now a broker is needed. Who only connects costs the cluster nothing.

        Raises UpstreamLeadsBack.
        """
        self.context.leading_back.look_at((self.client.peer, self.client.own_end), head, self.route.label)
        self.client.hold(Hold.CONNECTING)
        self._has_begun = True
        self.context.connecting.later(self._begin_connecting, self._address or "")

    def frame_was_sent(self, frame: bytearray) -> None:
        """A gathered frame was written as it lies. Others have its buffer once the system has taken it all."""
        if not self._frames_sent:
            self._loop.call_soon(self._give_back_frames)
        self._frames_sent.append(frame)

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
            if self._told_peer is not None:
                connection.peer = self._told_peer
            if self._is_let_in():
                self._learn_who_it_is()
                self.context.tally.connections_opened += 1
                self.context.sessions.add(self)
                if self._trace is not None:
                    self._trace.opened(self.client.peer, self.route.label)
        else:
            self._broker_open = True
            self._ends_upstream = (connection.own_end, connection.peer)
            self.context.leading_back.made(self._ends_upstream)
            self.client.release(Hold.CONNECTING)

    def _is_let_in(self) -> bool:
        address = self.client.peer.rpartition(":")[0]
        beyond = self.context.admission.enter(address)
        if beyond is None:
            self._address = address
            return True
        limit, most = beyond
        self.context.log.refused_connection(self.client.peer, limit, most)
        self.context.tally.connections_refused[limit] += 1
        self.client.abort()
        return False

    def _learn_who_it_is(self) -> None:
        self.identity.peer = self.client.peer
        handshake = self.client.tls
        if handshake is not None:
            principal = principal_of(handshake)
            self.identity.principal = None if principal is None else client_text(principal)
        self.route = self._route_for(self.context.asked_names.of(handshake) if handshake is not None else None)

    def _begin_connecting(self) -> None:
        if not self._has_ended:
            self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        context = self.context
        try:
            await connect(
                self.route.addresses, self.broker.protocol, context.upstream_tls, context.connect_timeout_seconds
            )
        except UpstreamUnreachable as error:
            self.context.log.upstream_unreachable(self.route.label, str(error))
            self.context.tally.upstream_failures += 1
            self._ends(f"proxy: upstream unreachable: {error}")
            self.client.abort()
            return
        except Exception as error:  # ours, whatever it is: the client shall not wait for ever
            self.on_our_fault(self.client, error)
            return
        if self.client.closed:
            self.broker.abort()

    def on_bytes_taken(self, connection: Connection) -> None:
        # Else a loop reads much of one connection many times before it looks at others.
        if connection.last_read >= _MUCH_BYTES and self.is_late():
            self.turn_is_over(connection)
        if connection is self.client:
            self._requests.turn_begins()
            if len(self.queue) >= self._max_in_flight:
                connection.hold(Hold.IN_FLIGHT)
            return
        self._answers.turn_begins()
        self.flush_ready()
        if len(self.queue) < self._max_in_flight:
            self.client.release(Hold.IN_FLIGHT)
        if self._draining:
            self._close_if_idle()

    def is_late(self) -> bool:
        """Whether the event loop has not looked at its sockets for long."""
        return self.context.turn.is_late()

    def turn_is_over(self, connection: Connection) -> None:
        """Much has come on it at once, or the loop is late: others first."""
        connection.hold(Hold.TURN_OVER)
        self.context.pacer.later(partial(connection.release, Hold.TURN_OVER), self._address or "")

    def _give_back_frames(self) -> None:
        """What the system has not taken yet is the transport's, and goes with it."""
        if self.broker.has_sent_all:
            for frame in self._frames_sent:
                self.context.frames.give_back(frame)
        self._frames_sent.clear()

    def on_full(self, connection: Connection, full: bool) -> None:
        if connection is self.broker:
            if full:
                self.client.hold(Hold.OTHER_SIDE_FULL)
            else:
                self._requests.give_back_memory()
                self.client.release(Hold.OTHER_SIDE_FULL)
        elif full:  # who reads no answers gets no more requests in, as with a broker
            self.broker.hold(Hold.OTHER_SIDE_FULL)
            self.client.hold(Hold.ANSWERS_UNREAD)
        else:
            self._answers.give_back_memory()
            self.broker.release(Hold.OTHER_SIDE_FULL)
            self.client.release(Hold.ANSWERS_UNREAD)

    def on_sender_error(self, connection: Connection, error: SenderError) -> None:
        self._ends(f"proxy: {error}")
        if connection is self.client:
            self.context.log.bad_client(self.identity, self.route.label, error)
            self.context.tally.bad_clients += 1
        else:
            self.context.log.bad_broker(self.route.label, error)
        self._requests.abandon()
        if connection is self.broker:
            self.client.close()
            self.broker.abort()
        elif isinstance(error, UnknownApi):
            self._turn_away(error)
        else:
            self._close_behind_answers()

    def _turn_away(self, error: UnknownApi) -> None:
        """A client that goes by no ApiVersions answer comes again at once, thousands of times a second: let it wait."""
        self.context.tally.unsupported_versions[error.api] += 1
        self.client.hold(Hold.TURNED_AWAY)
        self._loop.call_later(_TURNED_AWAY_SECONDS, self._close_behind_answers)

    def _close_behind_answers(self) -> None:
        """A broker has answered all that came before when it reads what it closes a connection for."""
        if self.client.closed:
            return
        self._draining = True
        self.client.hold(Hold.DRAINING)
        if self._linger is None:
            self._linger = self._loop.call_later(_LINGER_SECONDS, self._abort)
        self._close_if_idle()

    def on_our_fault(self, connection: Connection, error: BaseException) -> None:
        self._ends("proxy: a fault of its own")
        self.context.log.our_fault(self.identity, error)
        self._abort()

    def on_eof(self, connection: Connection) -> None:
        if self.is_late():  # thousands may leave at once
            self.context.pacer.later(partial(self._no_more_comes, connection), self._address or "")
        else:
            self._no_more_comes(connection)

    def _no_more_comes(self, connection: Connection) -> None:
        self._ends("client" if connection is self.client else "broker")
        if connection is self.client:
            self.account.has_left = True
            if not self._has_begun:
                self.client.close()
            self._say_goodbye_to_broker()
        else:
            self.client.close()
            self.broker.close()

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        self._ends("client" if connection is self.client else "broker")
        if connection is self.client:
            self._requests.give_up()
            if error is not None:  # a reset, which a broker drops what it has not dealt with for
                self._requests.abandon()
            self._say_goodbye_to_broker()
        else:
            self._answers.give_up()
            if self._ends_upstream is not None:
                self.context.leading_back.ended(self._ends_upstream)
            if isinstance(error, ssl.SSLError):  # in TLS 1.3 a broker refuses a certificate behind the handshake
                self.context.log.upstream_unreachable(self.route.label, words_of(error))
            self.client.close()
        if self.client.closed and (self.broker.closed or not self._broker_open):
            self._end()

    def _end(self) -> None:
        self.is_late()  # what it costs that many end is seen by who lets them go on
        if self._connecting is not None and not self._broker_open:
            self._connecting.cancel()
        if self._linger is not None:
            self._linger.cancel()
        self._requests.end()
        self._answers.end()
        self.queue.clear()
        if self._address is not None:
            self.context.admission.leave(self._address)
            self._address = None
        if self._trace is not None:
            self._trace.closed()
        self.context.ended(self)
        self._part()

    def _part(self) -> None:
        """Everything here holds the session, and it holds everything: left so, a thousand sessions that have ended wait
        for the garbage collector, which comes when as many new objects are there.
        """
        self._has_ended = True
        self.client.forget()
        self.broker.forget()
        self._requests = self._answers = self.fast_requests = None  # type: ignore[assignment]  # has_ended is asked first

    def _say_goodbye_to_broker(self) -> None:
        """No more requests will come; answers under way may still arrive, for a bounded time."""
        if self._said_goodbye or not self._broker_open or self.broker.closed:
            return
        if self._requests.is_busy:  # one that had arrived whole is still to be forwarded
            self._goodbye_due = True
            return
        self._said_goodbye = True
        if self._linger is None:
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
        if self._has_ended:
            return
        self._requests.abandon()
        self.client.abort()
        self.broker.abort()

    # -- waits that last too long --------------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """End what has been waited for too long. Called about once a second; `now` in seconds, monotonic."""
        client, broker, requests = self.client, self.broker, self._requests
        answer: tuple[bool, int] | None = None
        if broker.mid_frame and not broker.is_held:
            answer = (True, broker.frames_ended) if broker.is_gathering else (False, broker.bytes_in)
        seen = Seen(
            request=client.frames_ended if client.mid_frame else None,
            held_of_request=client.bytes_in if requests.holds_what_others_wait_for else None,
            answer=answer,
            dealt_with=requests.busy_with,
            unsent=broker.unsent_bytes if broker.is_full else None,
            others_wait=requests.others_wait,
            unread=client.unsent_bytes if client.is_full and self._answers.others_wait else None,
            moved=client.bytes_in + broker.bytes_in,
        )
        overdue = self._deadlines.look(seen, now)
        if overdue is not None:
            self._cut_off(overdue)

    def _cut_off(self, overdue: Overdue) -> None:
        self.context.log.cut_off(self.identity, self.route.label, overdue.limit, overdue.text)
        self.context.tally.cut_off[overdue.limit] += 1
        self._ends(f"proxy: {overdue.limit}")
        self._abort()

    # -- draining ------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take no more requests, let what is in flight be answered, then close."""
        if self._has_ended:
            return
        self._draining = True
        self._ends("proxy: it stops")
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
        if self._has_ended:
            return
        self._requests.give_back_memory()
        if self._goodbye_due:
            self._say_goodbye_to_broker()
        if self._draining:
            self._close_if_idle()


def _head_of(answer: Parts) -> bytes:
    head = b""
    for part in answer:
        head += bytes(part[: _TRACED_BYTES - len(head)])
    return head


def _trace_hold(trace: ConnectionTrace, side: str, reason: Hold, begins: bool) -> None:
    (trace.held if begins else trace.released)(side, reason.name.lower().replace("_", " "))
