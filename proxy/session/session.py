"""One client connection and the one upstream connection that belongs to it.

    client bytes -> RequestHandler (which request is this?) -> ProduceHandler or straight on -> broker
    broker bytes -> ResponseHandler (what does this answer need?) -> client

Answers leave in the order of the requests: the in-flight queue decides, nothing else. SASL, quotas, ordering and
idempotence hold by themselves, because a client's bytes never share a connection with another's.

No session opens a socket, reads a clock or starts a thread: what it has done for it outside is handed in.
"""

from functools import partial

from sluicegate.protocol.errors import SenderError, UnknownApi
from sluicegate.protocol.framing import FrameHandler, FrameReader
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, HEAD_BYTES
from sluicegate.proxy.fastpath.paths import NO_LANES, Lanes, lanes_of
from sluicegate.proxy.scheduling.fair_queue import Account
from sluicegate.proxy.session.arrival import Arrival, RouteFor
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.deadline_snapshot import snapshot_of
from sluicegate.proxy.session.deadlines import Deadlines
from sluicegate.proxy.session.delivery import Delivery, SentFrames
from sluicegate.proxy.session.dependencies import SessionDependencies
from sluicegate.proxy.session.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import InFlightQueue
from sluicegate.proxy.session.in_flight_room import has_to_go_on
from sluicegate.proxy.session.leaving import Leaving
from sluicegate.proxy.session.lifecycle import Lifecycle, LifecycleEvent, Stage
from sluicegate.proxy.session.limit_names import GATHERED_BYTES, IN_FLIGHT, limit_of
from sluicegate.proxy.session.metering import Metering
from sluicegate.proxy.session.outlets import UpstreamUnreachable
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.read_buffer import where_answers_come, where_first_requests_come, where_frames_start
from sluicegate.proxy.session.request_handler import RequestHandler
from sluicegate.proxy.session.response_handler import ResponseHandler
from sluicegate.proxy.session.traced_handlers import TracedAnswers, TracedRequests, trace_hold

# Who brings as much at once lets others go first where the loop is late.
_MUCH_BYTES = 16 * 1024
# How long a client that asks for what was never offered waits before it is disconnected; as a broker lets clients wait
# whose login has failed (connection.failed.authentication.delay.ms).
_TURNED_AWAY_SECONDS = 0.1


class Session:
    """See the module. Created for each accepted connection; ends when both sides are closed."""

    def __init__(self, dependencies: SessionDependencies, route_for: RouteFor, told_peer: str | None = None) -> None:
        """`route_for` says where the listener leads, given the host name that a TLS client asked for; `told_peer` is
        the client's address where a load balancer has told it.
        """
        self._dependencies = dependencies
        self._route_for = route_for
        self._told_peer = told_peer
        self.queue = InFlightQueue(dependencies.in_flight.total)
        self.identity = ClientIdentity("?")
        self.account = Account()
        limits = dependencies.limits
        self._max_in_flight = limits.max_in_flight
        self._deadlines = Deadlines(limits.frame_seconds, limits.idle_seconds)
        self._lifecycle = Lifecycle()
        self._trace = dependencies.begin_trace()
        self.metering = Metering(self, dependencies)
        self._requests = RequestHandler(self, dependencies.requests)
        self._answers = ResponseHandler(self, dependencies.requests.budget, dependencies.requests.produce.clock)
        self._connect_sides()
        self._arrival = Arrival(dependencies, self.identity, self.client, self.broker)
        self.sent_frames = SentFrames(self.broker, dependencies.frames, dependencies.loop.call_soon)
        self._leaving = Leaving(
            self._lifecycle, self.client, self.broker, self._requests, self.queue, dependencies.loop, self.close_now
        )
        self.delivery = Delivery(self.client, self.broker, self.queue, self._leaving.finish, self._trace)

    def _connect_sides(self) -> None:
        """Both connections, each read by its side: by the fast lane first, unless somebody wants to see each frame."""
        dependencies, trace = self._dependencies, self._trace
        from_client, from_broker = (
            where_frames_start(dependencies.read_buffer),
            where_answers_come(dependencies.read_buffer),
        )
        requests: FrameHandler = self._requests
        answers: FrameHandler = self._answers
        lanes: Lanes = NO_LANES
        if trace is None:
            ordinary = dependencies.requests.produce.ordinary
            lanes = lanes_of(
                ordinary,
                dependencies.lane_counts,
                dependencies.lane_room,
                self._requests,
                self.queue,
                self._max_in_flight,
                dependencies.limits.max_frame_bytes,
                dependencies.turn,
                from_client,
                dependencies.read_buffer,
                from_broker,
            )
        else:
            requests = TracedRequests(requests, self.identity, trace)
            answers = TracedAnswers(answers, self.identity, trace)
        self.fast_requests, fast_answers = lanes
        most = dependencies.limits.max_frame_bytes
        client_reader = FrameReader(requests, HEAD_BYTES, most, dependencies.frames, self.fast_requests)
        broker_reader = FrameReader(answers, CORRELATION_ID_BYTES, most, dependencies.frames, fast_answers)
        # A session that waits for a quota keeps what was read of its first request.
        self._reads_little = dependencies.requests.quotas.are_there
        first = where_first_requests_come(dependencies.read_buffer) if self._reads_little else from_client
        self.client = Connection(self, client_reader, first, dependencies.introduce_client, dependencies.loop)
        self.broker = Connection(self, broker_reader, from_broker, dependencies.introduce_broker, dependencies.loop)
        if self.fast_requests is not None and fast_answers is not None:
            self.fast_requests.lead(self.client, self.broker, self.turn_is_over)
            fast_answers.lead(self.client)
        if trace is not None:
            self.client.report_pauses(partial(trace_hold, trace, "client"))
            self.broker.report_pauses(partial(trace_hold, trace, "broker"))

    @property
    def stage(self) -> Stage:
        """How far it has come."""
        return self._lifecycle.stage

    @property
    def leads_to(self) -> str:
        """Where its client is led, for people."""
        return self._arrival.route.label

    def _ends(self, by: str) -> None:
        if self._trace is not None:
            self._trace.ends(by)

    # -- it begins -----------------------------------------------------------------------------------------------

    def on_open(self, connection: Connection) -> None:
        if connection is self.broker:
            self._lifecycle.comes_to(LifecycleEvent.BROKER_CAME)
            self._requests.broker_came()
            self._arrival.broker_came()
        elif self._arrival.let_in(self._told_peer, self._route_for):
            self._dependencies.register.opened(self)
            if self._trace is not None:
                self._trace.opened(self.identity.peer, self._arrival.route.label)
        else:
            self.client.abort()

    def begin(self, head: bytes) -> None:
        """The client has begun a request: now a broker is needed. Who only connects costs the cluster nothing.

        Raises UpstreamLeadsBack.
        """
        self._arrival.call_broker(head, self._has_no_broker)

    def _has_no_broker(self, error: Exception) -> None:
        if self._has_ended:
            return
        if not isinstance(error, UpstreamUnreachable):  # ours, whatever it is: the client shall not wait for ever
            self.on_our_fault(self.client, error)
            return
        self._dependencies.log.upstream_unreachable(self._arrival.route.label, str(error))
        self._dependencies.counts.upstream_failures += 1
        self._ends(f"proxy: upstream unreachable: {error}")
        self.client.abort()

    # -- how it stands --------------------------------------------------------------------------------------------

    @property
    def wants_broker(self) -> bool:
        """Whether the client has asked for something, so that a broker is needed."""
        return self._arrival.has_begun

    # -- bytes come and go ---------------------------------------------------------------------------------------

    def on_bytes_taken(self, connection: Connection) -> None:
        # Else a loop reads much of one connection many times before it looks at others.
        if connection.last_read >= _MUCH_BYTES and self.is_late():
            self.turn_is_over(connection)
        if connection is self.client:
            self._requests.turn_begins()
            self._requests.look_at_begun()
            self._leaving.client_was_read()
            if len(self.queue) >= self._max_in_flight and not has_to_go_on(connection, self.queue):
                connection.pause(PauseReason.IN_FLIGHT)
                self._dependencies.counts.limits_reached[IN_FLIGHT] += 1
            self._dependencies.in_flight.look_at(connection, self.queue)
            return
        self._answers.turn_begins()
        self.delivery.flush_ready()
        if len(self.queue) < self._max_in_flight:
            self.client.resume(PauseReason.IN_FLIGHT)
        self._leaving.settled()

    def reads_more(self) -> None:
        """The client is known, and may go on, or waits in a line."""
        if self._reads_little:
            self._reads_little = False
            self.client.read_into(where_frames_start(self._dependencies.read_buffer))

    def is_late(self) -> bool:
        """Whether the event loop has not looked at its sockets for long."""
        return self._dependencies.turn.is_late()

    def turn_is_over(self, connection: Connection) -> None:
        """Much has come on it at once, or the loop is late: others first."""
        connection.pause(PauseReason.TURN_OVER)
        self._dependencies.loop.later(partial(connection.turn_comes, PauseReason.TURN_OVER), self.client.address)

    def on_full(self, connection: Connection, full: bool) -> None:
        if connection is self.broker:
            if full:
                self.client.pause(PauseReason.OTHER_SIDE_FULL)
            else:
                self._requests.give_back_memory()
                self.client.resume(PauseReason.OTHER_SIDE_FULL)
        elif full:  # who reads no answers gets no more requests in, as with a broker
            self.broker.pause(PauseReason.OTHER_SIDE_FULL)
            self.client.pause(PauseReason.ANSWERS_UNREAD)
        else:
            self._answers.give_back_memory()
            self.broker.resume(PauseReason.OTHER_SIDE_FULL)
            self.client.resume(PauseReason.ANSWERS_UNREAD)

    def wait_for_memory(self, connection: Connection) -> None:
        """What comes on it is gathered, and there is no room for more now."""
        connection.pause(PauseReason.MEMORY)
        self._dependencies.counts.limits_reached[GATHERED_BYTES] += 1

    def request_settled(self) -> None:
        """What a request waited for has been dealt with."""
        if not self._has_ended:
            self._requests.give_back_memory()
            self._leaving.settled()

    # -- it ends -------------------------------------------------------------------------------------------------

    @property
    def _has_ended(self) -> bool:
        return self._lifecycle.stage is Stage.ENDED

    def on_sender_error(self, connection: Connection, error: SenderError) -> None:
        self._ends(f"proxy: {error}")
        self._requests.abandon()
        limit = limit_of(error)
        if limit is not None:
            self._dependencies.counts.limits_reached[limit] += 1
        if connection is self.broker:
            self._dependencies.log.bad_broker(self._arrival.route.label, self.broker.introduced.peer, error)
            self.client.close()
            self.broker.abort()
            return
        self._dependencies.log.bad_client(self.identity, self._arrival.route.label, error)
        self._dependencies.counts.bad_clients += 1
        self._dependencies.counts.request_errors[_error_of(error)] += 1
        if isinstance(error, UnknownApi):
            self._turn_away(error)
        else:
            self._leaving.close_behind_answers()

    def _turn_away(self, error: UnknownApi) -> None:
        """A client that goes by no ApiVersions answer comes again at once, thousands of times a second: let it wait."""
        self._dependencies.counts.unsupported_versions[error.api] += 1
        self.client.pause(PauseReason.TURNED_AWAY)
        self._dependencies.loop.call_later(_TURNED_AWAY_SECONDS, self._leaving.close_behind_answers)

    def on_our_fault(self, connection: Connection, error: BaseException) -> None:
        self._ends("proxy: a fault of its own")
        self._dependencies.log.our_fault(self.identity, error)
        self._dependencies.counts.internal_errors["closed"] += 1
        self.close_now()

    def goes_unjudged(self, error: BaseException) -> None:
        """A request goes on as it came, because of a fault of ours over it."""
        self._dependencies.log.goes_unjudged(self.identity, error)
        self._dependencies.counts.internal_errors["forwarded"] += 1

    def on_eof(self, connection: Connection) -> None:
        if self.is_late():  # thousands may leave at once
            self._dependencies.loop.later(partial(self._no_more_comes, connection), self.client.address)
        else:
            self._no_more_comes(connection)

    def _no_more_comes(self, connection: Connection) -> None:
        if self._has_ended:
            return
        self._ends("client" if connection is self.client else "broker")
        if connection is self.client:
            self.account.has_left = True
            if not self._arrival.has_begun:
                self.client.close()
            self._leaving.say_goodbye()
        else:
            self.client.close()
            self.broker.close()

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        self._ends("client" if connection is self.client else "broker")
        if connection is self.client:
            self._requests.give_up()
            if error is not None:  # a reset, which a broker drops what it has not dealt with for
                self._requests.abandon()
            self._leaving.say_goodbye()
        else:
            self._answers.give_up()
            self._arrival.broker_went()
            why = self._dependencies.why_lost(error)
            if why is not None:
                self._dependencies.log.upstream_unreachable(self._arrival.route.label, why)
            self.client.close()
        if self.client.closed and not self.broker.is_open:
            self._end()

    def _end(self) -> None:
        self.is_late()  # what it costs that many end is seen by who lets them go on
        self._arrival.end()
        self.metering.end()
        self._leaving.end()
        self._requests.end()
        self._answers.end()
        self.queue.clear()
        if self._trace is not None:
            self._trace.closed()
        self._dependencies.register.ended(self)
        self._part()

    def _part(self) -> None:
        """Everything here holds the session, and it holds everything: left so, a thousand sessions that have ended wait
        for the garbage collector, which comes when as many new objects are there.
        """
        self.client.forget()
        self.broker.forget()
        self._requests = self._answers = self.fast_requests = None  # type: ignore[assignment]  # its stage is asked first
        self._leaving = self.delivery = self.metering = None  # type: ignore[assignment]

    def drain(self) -> None:
        """Take no more requests, let what is in flight be answered, then close."""
        if not self._has_ended:
            self._ends("proxy: it stops")
            self._leaving.drain()

    def close_now(self) -> None:
        """Cut both sides off."""
        if not self._has_ended:
            self._requests.abandon()
            self.client.abort()
            self.broker.abort()

    def look(self, now: float) -> None:
        """End what has been waited for too long. Called about once a second; `now` in seconds, monotonic."""
        if self._has_ended:
            return
        overdue = self._deadlines.look(snapshot_of(self.client, self.broker, self._requests, self._answers), now)
        if overdue is not None:
            self._dependencies.log.cut_off(self.identity, self._arrival.route.label, overdue.limit, overdue.text)
            self._dependencies.counts.cut_off[overdue.limit] += 1
            self._ends(f"proxy: {overdue.limit}")
            self.close_now()


def _error_of(error: SenderError) -> tuple[str, str]:
    """The API, as far as it is one, and what is wrong."""
    return (error.api, "UNSUPPORTED_VERSION") if isinstance(error, UnknownApi) else ("unknown", "MALFORMED")
