"""Handles a client's frames: recognizes each request's API and decides how to handle the request."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from sluicegate.protocol.api import APIS, MAX_BYTES_BEFORE_LOGIN, Api, ApiHandling, ApiKey
from sluicegate.protocol.errors import MalformedMessage, RequestBeforeLogin, UnknownApi
from sluicegate.protocol.framing import Disposition
from sluicegate.protocol.headers import (
    HEAD_BYTES,
    read_request_head,
)
from sluicegate.proxy.session.broker_errors import BrokerErrors, expect_code
from sluicegate.proxy.session.client.identity import ClientIdentity, SaslStage, SaslTracker, may_be_request
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.forwarding import Forwarding
from sluicegate.proxy.session.handlers.dependencies import RequestDependencies
from sluicegate.proxy.session.handlers.login_handler import LoginHandler
from sluicegate.proxy.session.in_flight import Finish, InFlightRequest
from sluicegate.proxy.session.limit_names import GATHERED_BYTES
from sluicegate.proxy.session.memory import Gathering
from sluicegate.proxy.session.pacing import SessionTurns
from sluicegate.proxy.session.pass_through import PassThrough
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.produce.intake import ProduceIntake
from sluicegate.proxy.session.request_runner import RequestRunner

# These are globals, because looking up an enum member costs more than the comparison.
_STREAM, _GATHER = Disposition.STREAM, Disposition.GATHER
_OPAQUE, _GUARD, _DESCRIBE, _HEARTBEAT, _REWRITE, _VALIDATE, _NEGOTIATE = (
    ApiHandling.OPAQUE,
    ApiHandling.GUARD,
    ApiHandling.DESCRIBE,
    ApiHandling.HEARTBEAT,
    ApiHandling.REWRITE,
    ApiHandling.VALIDATE,
    ApiHandling.NEGOTIATE,
)
_MAY_CHANGE = (_GUARD, _DESCRIBE, _HEARTBEAT)
_RAW_TOKENS = SaslStage.RAW_TOKENS
# At most this many requests are read from one connection before other connections get their turn.
_REQUESTS_A_TURN = 64


class BrokerConnector(Protocol):
    """Connects to a broker for the first request."""

    def connect_broker(self, head: bytes) -> None: ...


class ChangeHandler(Protocol):
    """Handles requests that change topics."""

    def gathers(self, handling: ApiHandling) -> bool: ...

    def take(self, api: Api, version: int, correlation_id: int, frame: bytearray) -> None: ...


class RequestHandler:
    """Recognizes requests by their first eight bytes, and gathers only those that it must read completely."""

    def __init__(
        self,
        shared: RequestDependencies,
        identity: ClientIdentity,
        client: Connection,
        broker: Connection,
        sasl: SaslTracker,
        pass_through: PassThrough,
        arrival: BrokerConnector,
        turns: SessionTurns,
        forwarding: Forwarding,
        runner: RequestRunner,
        login: LoginHandler,
        produce: ProduceIntake,
        changes: ChangeHandler | None,
        errors: BrokerErrors,
    ) -> None:
        """`changes` is None if requests that change topics are forwarded unread."""
        self._cluster_login, self._rewriter = shared.login, shared.rewriter
        self._counts, self._clock = shared.produce.counts, shared.produce.clock
        self._identity = identity
        self._client = client
        self._broker = broker
        self._sasl = sasl
        self._pass_through = pass_through
        self._arrival = arrival
        self._turns = turns
        self._forwarding = forwarding
        self._runner = runner
        self._login = login
        self._produce = produce
        self._changes = changes
        self._errors = errors
        self._rewritings: dict[tuple[int, int], Finish] = {}
        self._on_gathered: Callable[[bytearray], None] | None = None
        self._has_broker = False
        self._before_broker = b""
        self._turn_left = _REQUESTS_A_TURN
        budget = shared.budget
        self._small_frame_bytes = budget.small_frame_bytes
        self._small = Gathering(budget.small, self._memory_came)
        self._large = Gathering(budget.large, self._memory_came)

    @property
    def other_connections_wait(self) -> bool:
        """Whether other connections wait for memory that this handler holds."""
        return any(each.held and each.other_connections_wait for each in (self._small, self._large))

    @property
    def holds_what_others_wait_for(self) -> bool:
        """Whether other connections wait for memory that this client's partial request holds."""
        waits = self._small.is_waiting or self._large.is_waiting
        return self._client.is_gathering and not waits and self.other_connections_wait

    def on_head(self, size: int, head: bytes) -> Disposition:
        """Decide by API and version how to handle a request. Raises SenderError for requests that brokers reject."""
        if not self._pass_through.has_begun:
            self._pass_through.has_begun = True
            self._arrival.connect_broker(head)
        self._turn_left -= 1
        # The first request never ends a turn, so that a client that sends one request at a time never waits.
        if self._turn_left <= 0 or (self._turn_left < _REQUESTS_A_TURN - 1 and self._turns.check_lateness()):
            self._turns.pause_for_others(self._client)
        if self._sasl.stage is _RAW_TOKENS:
            if not may_be_request(size, head):
                self._on_gathered = self._login.raw_token
                return self._gather_before_login(size)
            self._sasl.on_first_request()
        if size < HEAD_BYTES:
            raise MalformedMessage(f"a frame of {size} bytes is too short for a request")
        api_key, version, correlation_id = read_request_head(head)
        api = APIS.get(api_key)
        if api is None:
            raise UnknownApi(f"unknown API key {api_key} (version {version})")
        if not 0 <= version <= api.max_version:
            if api_key == ApiKey.API_VERSIONS:
                self._on_gathered = partial(self._login.too_new_api_versions, api, correlation_id)
                return self._gather_before_login(size)
            raise UnknownApi(f"{api.name} v{version}: this proxy supports versions 0 to {api.max_version}", api.name)
        return self._by_treatment(api, version, correlation_id, size)

    def on_pass(self, data: memoryview) -> None:
        """Forward bytes of a request that is not parsed."""
        if self._has_broker:
            self._broker.write(bytes(data))
        else:  # the head of the first request arrived in parts, so no more is read until a broker is connected
            self._before_broker += bytes(data)

    def on_broker_connected(self) -> None:
        """Forward bytes that were waiting for the broker."""
        self._has_broker = True
        if self._before_broker:
            self._broker.write(self._before_broker)
            self._before_broker = b""

    def on_room(self, more: int, size: int) -> None:
        """Reserve memory for `more` bytes of a request that is being gathered."""
        gathering = self._small if size <= self._small_frame_bytes else self._large
        if not gathering.reserve(more):
            self._client.pause(PauseReason.MEMORY)
            self._counts.limits_reached[GATHERED_BYTES] += 1

    def on_frame(self, frame: bytearray) -> None:
        """Handle a gathered request."""
        handle, self._on_gathered = self._on_gathered, None
        assert handle is not None
        handle(frame)
        self.release_memory()

    def begin_turn(self) -> None:
        """Start a new turn once all input was read or has to wait, and check the quota of a partial request."""
        self._turn_left = _REQUESTS_A_TURN
        self._produce.check_partial_request()

    def release_memory(self) -> None:
        """Free the memory of requests that have been forwarded."""
        if self._on_gathered is None and not self._runner.is_busy and not self._broker.is_full:
            self._small.settle()
            self._large.settle()

    def give_up(self) -> None:
        """Free memory after the client has disconnected.

        A request that is being validated continues, as on a broker, and keeps its memory.
        """
        self._small.stop_waiting()
        self._large.stop_waiting()
        if not self._runner.is_busy:
            self._small.settle()
            self._large.settle()

    def end(self) -> None:
        """Clean up at the end of the session."""
        self._produce.end()
        self._on_gathered = None
        self._small.leave()
        self._large.leave()

    def _by_treatment(self, api: Api, version: int, correlation_id: int, size: int) -> Disposition:
        handling = api.handling
        may_change = handling in _MAY_CHANGE
        is_gathered = may_change and self._changes is not None and self._changes.gathers(handling)
        if handling is _OPAQUE or (may_change and not is_gathered):
            self._passes(api, version, InFlightRequest(correlation_id))
            return _STREAM
        if handling is _REWRITE:
            self._passes(api, version, InFlightRequest(correlation_id, self._rewriting(api.key, version)))
            return _STREAM
        if (is_gathered or handling is _VALIDATE) and self._cluster_login.is_wanted and not self._sasl.logged_in:
            raise RequestBeforeLogin(f"{api.name} was sent before the login that the cluster requires")
        if is_gathered and self._changes is not None:
            self._on_gathered = partial(self._changes.take, api, version, correlation_id)
            return _GATHER
        if handling is _VALIDATE:
            self._produce.begin(version, correlation_id)
            self._on_gathered = self._produce.take
            return _GATHER
        if handling is _NEGOTIATE:
            self._on_gathered = partial(self._login.api_versions, api, version)
        else:
            self._on_gathered = partial(self._login.sasl_request, api, version)
        return self._gather_before_login(size)

    def _rewriting(self, api_key: int, version: int) -> Finish:
        """Return the function that rewrites one kind of response.

        Each kind has one function object, because many requests may be in flight.
        """
        kind = api_key, version
        found = self._rewritings.get(kind)
        if found is None:
            report = partial(self._errors.count_codes, api_key)
            rewrite = self._rewriter.rewrite
            found = partial(rewrite, api_key, version, report=report, client_id=self._client_id)
            self._rewritings[kind] = found
        return found

    def _client_id(self) -> str | None:
        return self._identity.client_id

    def _passes(self, api: Api, version: int, in_flight: InFlightRequest) -> None:
        """Expect the response to a request that is forwarded as it arrives. Its time in the proxy is not measured."""
        self._counts.slow_requests[api.name] += 1
        self._clock.awaits(api.key, in_flight, self._clock.now())
        self._forwarding.expect(expect_code(in_flight, api.key, version))

    def _gather_before_login(self, size: int) -> Disposition:
        """Gather a request. Before a login its size is limited, as on a broker (sasl.server.max.receive.size)."""
        if size > MAX_BYTES_BEFORE_LOGIN:
            raise MalformedMessage(
                f"a request of {size} bytes; before a login brokers accept at most {MAX_BYTES_BEFORE_LOGIN}"
            )
        return _GATHER

    def _memory_came(self) -> None:
        try:
            self.release_memory()
            self._client.resume(PauseReason.MEMORY)
        except Exception as error:  # after an internal error, the client must not wait forever
            self._runner.fail(error)
