"""One client connection and its broker connection.

The in-flight queue sends responses in the order of the requests. SASL, quotas, ordering and idempotence work unchanged,
because different clients never share a broker connection.

A session opens no socket, reads no clock and starts no thread, because these are injected. Its parts refer to each
other in one direction, and never to the session (`sluicegate.proxy.session.handlers.session_parts`). Until it ends,
only its two connections call it.
"""

from functools import partial

from sluicegate.protocol.errors import MalformedResponse, SenderError, UnknownApi
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.deadlines import ConnectionAge, Deadlines, snapshot_of
from sluicegate.proxy.session.handlers.arrival import RouteFor
from sluicegate.proxy.session.handlers.dependencies import SessionDependencies
from sluicegate.proxy.session.handlers.session_parts import make_parts
from sluicegate.proxy.session.in_flight_limit import must_keep_reading
from sluicegate.proxy.session.lifecycle import Lifecycle, LifecycleEvent, Stage
from sluicegate.proxy.session.limit_names import CONNECTION_AGE, IN_FLIGHT, limit_of
from sluicegate.proxy.session.pause_reason import PauseReason

# After reading more than this, a connection lets others go first if the loop is late.
_MUCH_BYTES = 16 * 1024
# A client that uses an unsupported API is disconnected after this delay, as brokers delay failed logins
# (connection.failed.authentication.delay.ms).
_UNSUPPORTED_API_SECONDS = 0.1


class Session:
    """One session, which is created for each accepted connection and ends when both sides are closed."""

    def __init__(
        self, dependencies: SessionDependencies, route_for: RouteFor, proxy_header_peer: str | None = None
    ) -> None:
        """`route_for` returns the route for the host name that a TLS client requested.

        `proxy_header_peer` is the client's address from a PROXY header, or None.
        """
        self._dependencies = given = dependencies
        self._route_for = route_for
        self._announced_peer = proxy_header_peer
        self._max_in_flight = given.limits.max_in_flight
        self._deadlines = Deadlines(given.limits.frame_timeout_seconds, given.limits.idle_timeout_seconds)
        self._age = ConnectionAge(given.limits.max_connection_age_seconds, given.chance)
        self._lifecycle = Lifecycle()
        self._trace = given.begin_trace()
        parts = make_parts(given, self, self._lifecycle, self._trace, self._reject, self._request_settled)
        self.identity = parts.identity
        self.account = parts.account
        self.queue = parts.queue
        self.client = parts.client
        self.broker = parts.broker
        self.metering = parts.metering
        self.requests = parts.requests
        self._responses = parts.responses
        self._turns = parts.turns
        self._runner = parts.runner
        self._closer = parts.closer
        self._delivery = parts.delivery
        self._arrival = parts.arrival

    @property
    def stage(self) -> Stage:
        """The current stage."""
        return self._lifecycle.stage

    @property
    def route_label(self) -> str:
        """The label of the client's broker."""
        return self._arrival.route.label

    @property
    def wants_broker(self) -> bool:
        """Whether the client has sent a request, which needs a broker."""
        return self._arrival.has_begun

    def _ends(self, by: str) -> None:
        if self._trace is not None:
            self._trace.session_ending(by)

    # -- start ---------------------------------------------------------------------------------------------------

    def on_open(self, connection: Connection) -> None:
        if connection is self.broker:
            self._lifecycle.apply(LifecycleEvent.BROKER_CONNECTED)
            self.requests.on_broker_connected()
            self._arrival.on_broker_connected()
        elif self._arrival.admit(self._announced_peer, self._route_for):
            self._dependencies.register.opened(self)
            if self._trace is not None:
                self._trace.connection_opened(self.identity.peer, self._arrival.route.label)
        else:
            self.client.abort()

    # -- input and output ----------------------------------------------------------------------------------------

    def on_bytes_taken(self, connection: Connection) -> None:
        # Without this check, the loop would read one connection many times before it serves others.
        if connection.last_read >= _MUCH_BYTES and self._turns.check_lateness():
            self._turns.pause_for_others(connection)
        if connection is self.client:
            self.requests.begin_turn()
            self._closer.on_client_read()
            if len(self.queue) >= self._max_in_flight and not must_keep_reading(connection, self.queue):
                connection.pause(PauseReason.IN_FLIGHT)
                self._dependencies.counts.limits_reached[IN_FLIGHT] += 1
            self._dependencies.in_flight.check(connection, self.queue)
            return
        self._responses.begin_turn()
        self._delivery.flush_ready()
        if len(self.queue) < self._max_in_flight:
            self.client.resume(PauseReason.IN_FLIGHT)
        self._closer.settled()

    def on_full(self, connection: Connection, full: bool) -> None:
        if connection is self.broker:
            if full:
                self.client.pause(PauseReason.PEER_BACKPRESSURE)
            else:
                self.requests.release_memory()
                self.client.resume(PauseReason.PEER_BACKPRESSURE)
        elif full:  # like a broker, the proxy reads no more requests from a client that does not read its responses
            self.broker.pause(PauseReason.PEER_BACKPRESSURE)
            self.client.pause(PauseReason.CLIENT_NOT_READING)
        else:
            self._responses.release_memory()
            self.broker.resume(PauseReason.PEER_BACKPRESSURE)
            self.client.resume(PauseReason.CLIENT_NOT_READING)

    def _request_settled(self) -> None:
        """Continue after a request that had to wait has completed."""
        self.requests.release_memory()
        self._responses.release_memory()
        self._closer.settled()

    # -- end -----------------------------------------------------------------------------------------------------

    @property
    def _has_ended(self) -> bool:
        return self._lifecycle.stage is Stage.ENDED

    def on_sender_error(self, connection: Connection, error: SenderError) -> None:
        given = self._dependencies
        self._ends(f"proxy: {error}")
        self._runner.abandon()
        limit = limit_of(error)
        if limit is not None:
            given.counts.limits_reached[limit] += 1
        if connection is self.broker:
            given.log.bad_broker(self._arrival.route.label, self.broker.peer_info.peer, error)
            self.client.close()
            self.broker.abort()
            return
        given.log.bad_client(self.identity, self._arrival.route.label, error)
        given.counts.protocol_errors += 1
        given.counts.request_errors[_error_of(error)] += 1
        if isinstance(error, UnknownApi):
            self._turn_away(error)
        else:
            self._closer.close_after_responses()

    def _reject(self, error: SenderError) -> None:
        self.on_sender_error(self.broker if isinstance(error, MalformedResponse) else self.client, error)

    def _turn_away(self, error: UnknownApi) -> None:
        """Disconnect the client after a delay.

        Otherwise a client that ignores ApiVersions would reconnect thousands of times a second.
        """
        self._dependencies.counts.unsupported_versions[error.api] += 1
        self.client.pause(PauseReason.UNSUPPORTED_API)
        self._dependencies.loop.call_later(_UNSUPPORTED_API_SECONDS, self._closer.close_after_responses)

    def on_internal_error(self, connection: Connection, error: BaseException) -> None:
        self._runner.fail(error)

    def on_eof(self, connection: Connection) -> None:
        if self._turns.check_lateness():  # thousands of clients may disconnect at once
            self._dependencies.loop.later(partial(self._no_more_comes, connection), self.client.address)
        else:
            self._no_more_comes(connection)

    def _no_more_comes(self, connection: Connection) -> None:
        if self._has_ended:
            return
        self._ends("client" if connection is self.client else "broker")
        if connection is self.client:
            self.account.has_left = True
            if not self._runner.is_busy:
                self.metering.pass_turn_on()
            if not self._arrival.has_begun:
                self.client.close()
            self._closer.end_requests()
        else:
            self.client.close()
            self.broker.close()

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        self._ends("client" if connection is self.client else "broker")
        if connection is self.client:
            self.requests.give_up()
            if error is not None:  # after a reset, a broker drops requests that it has not handled
                self._runner.abandon()
            if not self._runner.is_busy:
                self.metering.pass_turn_on()
            self._closer.end_requests()
        else:
            self._responses.give_up()
            self._arrival.on_broker_lost()
            why = self._dependencies.why_lost(error)
            if why is not None:
                self._dependencies.log.upstream_unreachable(self._arrival.route.label, why)
            self.client.close()
        if self.client.closed and not self.broker.is_open:
            self._end()

    def _end(self) -> None:
        """Clean up and break the reference cycles, so that the memory is freed without the garbage collector."""
        self._turns.check_lateness()  # measures the cost of many sessions that end at once
        self._arrival.end()
        self.metering.end()
        self._closer.end()
        self._runner.end()
        self.requests.end()
        self._responses.end()
        if self._trace is not None:
            self._trace.connection_closed()
        self._dependencies.register.ended(self)
        self.client.forget()
        self.broker.forget()

    def drain(self) -> None:
        """Stop reading requests, complete those in flight, then close."""
        if not self._has_ended:
            self._ends("proxy: it stops")
            self._closer.drain()

    def close_now(self) -> None:
        """Close both connections immediately."""
        if not self._has_ended:
            self._runner.cut_off()

    def check_deadlines(self, now: float) -> None:
        """End overdue waits and count batches. Called about once a second. `now` is monotonic, in seconds."""
        if self._has_ended:
            return
        waits = snapshot_of(self.client, self.broker, self.requests, self._responses, self._runner.busy_with)
        overdue = self._deadlines.overdue(waits, now)
        if overdue is not None:
            given = self._dependencies
            given.log.closed_by_limit(self.identity, self._arrival.route.label, overdue.limit, overdue.text)
            given.counts.closed_by_limit[overdue.limit] += 1
            self._ends(f"proxy: {overdue.limit}")
            self.close_now()
        elif self._lifecycle.stage < Stage.DRAINING and self._age.is_reached(now):
            self._dependencies.counts.closed_by_limit[CONNECTION_AGE] += 1
            self._ends(f"proxy: {CONNECTION_AGE}")
            self._closer.drain()


def _error_of(error: SenderError) -> tuple[str, str]:
    """Return the API to which the error belongs, if it is known, and the error's kind."""
    return (error.api, "UNSUPPORTED_VERSION") if isinstance(error, UnknownApi) else ("unknown", "MALFORMED")
