"""Handles the frames of a client: recognizes the API and decides how to handle each request."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sluicegate.protocol.api import APIS, MAX_BYTES_BEFORE_LOGIN, Api, ApiKey, Treatment
from sluicegate.protocol.before_login import software_in
from sluicegate.protocol.errors import LoginMissing, MalformedMessage, UnknownApi
from sluicegate.protocol.framing import Disposition, Parts
from sluicegate.protocol.headers import (
    HEAD_BYTES,
    RequestHeader,
    parse_request_header,
    read_request_head,
    response_body_at,
)
from sluicegate.proxy.fastpath.paths import FALL_BACK, GOOD
from sluicegate.proxy.responses.rewriting import cut_down_versions, unsupported_api_versions
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.identity import ClientIdentity, Login, SaslStage, SaslTracker
from sluicegate.proxy.session.client.sasl_token import may_be_request
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.delivery import Delivery
from sluicegate.proxy.session.dependencies import RequestDependencies
from sluicegate.proxy.session.forwarding import Forwarding
from sluicegate.proxy.session.in_flight import ANY_CORRELATION_ID, Finish, InFlightRequest
from sluicegate.proxy.session.limit_names import GATHERED_BYTES
from sluicegate.proxy.session.memory import Gathering
from sluicegate.proxy.session.pacing import SessionTurns
from sluicegate.proxy.session.pass_through import PassThrough
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.produce.effect_performer import ProduceEffects
from sluicegate.proxy.session.produce.handler import ProduceHandler
from sluicegate.proxy.session.quotas.metering import Metering, QuotaDecision
from sluicegate.proxy.session.request_runner import AwaitedResponse, RequestRunner, Steps

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import FastRequests

_PRODUCE = APIS[ApiKey.PRODUCE]
_SASL_AUTHENTICATE = APIS[ApiKey.SASL_AUTHENTICATE]  # also for raw tokens, which have no header
# Globals, because an enum lookup costs more than the comparison.
_STREAM, _GATHER = Disposition.STREAM, Disposition.GATHER
_OPAQUE, _REWRITE, _VALIDATE, _NEGOTIATE = Treatment.OPAQUE, Treatment.REWRITE, Treatment.VALIDATE, Treatment.NEGOTIATE
_RAW_TOKENS = SaslStage.RAW_TOKENS
_LOGIN_REJECTED = "SASL_AUTHENTICATION_FAILED"
# Enough for a client id; longer headers are parsed each time, so that no connection keeps more.
_REMEMBERED_HEADER_BYTES = 1024
# A version 1 header ends with the client id; later versions have the same beginning.
_WITH_CLIENT_ID = 1
# The requests of one connection that are read before other connections have their turn.
_REQUESTS_A_TURN = 64


class LoginForwarded(NamedTuple):
    """Forward the current login request. Results in the broker's response."""


class Arrival(Protocol):
    """Connects a broker for the first request."""

    def connect_broker(self, head: bytes) -> None: ...


class RequestHandler:
    """Recognizes requests by their first eight bytes; gathers only the requests that require it."""

    def __init__(
        self,
        shared: RequestDependencies,
        identity: ClientIdentity,
        client: Connection,
        broker: Connection,
        sasl: SaslTracker,
        pass_through: PassThrough,
        arrival: Arrival,
        turns: SessionTurns,
        metering: Metering,
        forwarding: Forwarding,
        delivery: Delivery,
        runner: RequestRunner,
        produce: ProduceHandler,
        produce_effects: ProduceEffects,
        fast: "FastRequests | None",
        known_client_buffer: memoryview | None,
    ) -> None:
        """`known_client_buffer`: the read buffer after the client is known; None: it does not change."""
        self._login, self._log, self._rewriter = shared.login, shared.log, shared.rewriter
        self._counts, self._clock = shared.produce.counts, shared.produce.clock
        self._identity = identity
        self._client = client
        self._broker = broker
        self._sasl = sasl
        self._pass_through = pass_through
        self._arrival = arrival
        self._turns = turns
        self._metering = metering
        self._forwarding = forwarding
        self._delivery = delivery
        self._runner = runner
        self._produce_handler = produce
        self._perform = produce_effects.perform
        self._fast = fast
        self._known_client_buffer = known_client_buffer
        self._on_gathered: Callable[[bytearray], None] | None = None
        self._version = 0
        self._correlation_id = 0
        self._header_version = -1
        self._header_rest = b""
        self._header_client_id: str | None = None
        self._header_generation = -1
        self._has_broker = False
        self._is_unmet = False
        self._before_broker = b""
        self._turn_left = _REQUESTS_A_TURN
        budget = shared.budget
        self._small_frame_bytes = budget.small_frame_bytes
        self._small = Gathering(budget.small, self._memory_came)
        self._large = Gathering(budget.large, self._memory_came)

    @property
    def others_wait(self) -> bool:
        """Whether others wait for memory that is held here."""
        return any(each.held and each.others_wait for each in (self._small, self._large))

    @property
    def holds_what_others_wait_for(self) -> bool:
        """Whether others wait for memory that this client's partial request holds."""
        waits = self._small.is_waiting or self._large.is_waiting
        return self._client.is_gathering and not waits and self.others_wait

    def on_head(self, size: int, head: bytes) -> Disposition:
        """Decide by API and version. Raises SenderError for requests that brokers reject."""
        if not self._pass_through.has_begun:
            self._pass_through.has_begun = True
            self._arrival.connect_broker(head)
        self._turn_left -= 1
        # The first request of a turn never ends it, so that a client with one request at a time never waits.
        if self._turn_left <= 0 or (self._turn_left < _REQUESTS_A_TURN - 1 and self._turns.is_late()):
            self._turns.end(self._client)
        if self._sasl.stage is _RAW_TOKENS:
            if not may_be_request(size, head):
                self._on_gathered = self._raw_token
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
                self._on_gathered = partial(self._too_new_api_versions, api, correlation_id)
                return self._gather_before_login(size)
            raise UnknownApi(f"{api.name} v{version}: this proxy understands 0 to {api.max_version}", api.name)
        return self._by_treatment(api, version, correlation_id, size)

    def on_pass(self, data: memoryview) -> None:
        """Forward bytes of a request that is not parsed."""
        if self._has_broker:
            self._broker.write(bytes(data))
        else:  # the head of the first request arrived in parts; read no more until there is a broker
            self._before_broker += bytes(data)

    def on_broker_connected(self) -> None:
        """Forward bytes that were waiting for the broker."""
        self._has_broker = True
        if self._before_broker:
            self._broker.write(self._before_broker)
            self._before_broker = b""

    def on_room(self, more: int, size: int) -> None:
        """Reserve memory for a request that is being gathered."""
        gathering = self._small if size <= self._small_frame_bytes else self._large
        if not gathering.want(more):
            self._client.pause(PauseReason.MEMORY)
            self._counts.limits_reached[GATHERED_BYTES] += 1

    def on_frame(self, frame: bytearray) -> None:
        """Handle a gathered request."""
        handle, self._on_gathered = self._on_gathered, None
        assert handle is not None
        handle(frame)
        self.give_back_memory()

    def check_partial_request(self) -> None:
        """Read the client id of a partial Produce request, and pause the client if it exceeds a quota."""
        begun = self._client.begun if self._is_unmet else None
        if begun is None:
            return
        with begun:
            if self._knows_header_of(self._version, begun):
                self._is_unmet = False
                return
            try:
                client_id = parse_request_header(begun, _WITH_CLIENT_ID).client_id
            except MalformedMessage:  # the rest of the header has not arrived
                return
        self._is_unmet = False
        self._identity.client_id = None if client_id is None else client_text(client_id)
        match self._metering.admit(self._identity.for_rules()):
            case QuotaDecision.WAIT:
                self._client.pause(PauseReason.QUOTA_TURN)
                self._metering.wait_for_turn(partial(self._client.resume, PauseReason.QUOTA_TURN))
            case QuotaDecision.REJECT:
                self._delivery.in_turn(InFlightRequest(closes=True))

    def turn_begins(self) -> None:
        """Start a new turn, because all input was read or has to wait."""
        self._turn_left = _REQUESTS_A_TURN

    def give_back_memory(self) -> None:
        """Free the memory of requests that were forwarded."""
        if self._on_gathered is None and not self._runner.is_busy and not self._broker.is_full:
            self._small.settle()
            self._large.settle()

    def give_up(self) -> None:
        """Free memory after the client has left. A request in validation continues, as at a broker, and keeps its
        memory.
        """
        self._small.stop_waiting()
        self._large.stop_waiting()
        if not self._runner.is_busy:
            self._small.settle()
            self._large.settle()

    def end(self) -> None:
        """Clean up at the end of the session."""
        self._produce_handler.end()
        self._on_gathered = None
        self._small.leave()
        self._large.leave()

    def _by_treatment(self, api: Api, version: int, correlation_id: int, size: int) -> Disposition:
        treatment = api.treatment
        if treatment is _OPAQUE:
            self._passes(api, InFlightRequest(correlation_id))
            return _STREAM
        if treatment is _REWRITE:
            self._passes(api, InFlightRequest(correlation_id, self._rewriter.rewriting(api.key, version)))
            return _STREAM
        if treatment is _VALIDATE:
            if self._login.is_wanted and not self._sasl.logged_in:
                raise LoginMissing(f"{api.name} before the login that the cluster wants")
            self._version = version
            self._correlation_id = correlation_id
            self._on_gathered = self._produce
            self._is_unmet = self._metering.may_be_on
            return _GATHER
        if treatment is _NEGOTIATE:
            self._on_gathered = partial(self._api_versions, api, version)
        else:
            self._on_gathered = partial(self._sasl_request, api, version)
        return self._gather_before_login(size)

    def _passes(self, api: Api, in_flight: InFlightRequest) -> None:
        """Expect the response to a request that is forwarded as it arrives; its time in the proxy is not measured."""
        self._counts.slow_requests[api.name] += 1
        self._clock.awaits(api.key, in_flight, self._clock.now())
        self._forwarding.expect(in_flight)

    def _gather_before_login(self, size: int) -> Disposition:
        """Gather a request; before a login it is small, as on a broker (sasl.server.max.receive.size)."""
        if size > MAX_BYTES_BEFORE_LOGIN:
            raise MalformedMessage(
                f"a request of {size} bytes where brokers take {MAX_BYTES_BEFORE_LOGIN} before a login"
            )
        return _GATHER

    def _memory_came(self) -> None:
        try:
            self.give_back_memory()
            self._client.resume(PauseReason.MEMORY)
        except Exception as error:  # the client must not wait forever
            self._runner.fail(error)

    # -- gathered requests ---------------------------------------------------------------------------------------

    def _header(self, api: Api, version: int, frame: bytearray) -> RequestHeader:
        try:
            header = parse_request_header(frame, api.request_header_version(version))
        except MalformedMessage as error:
            raise MalformedMessage(f"{api.name} v{version}: {error}") from error
        self._identity.client_id = None if header.client_id is None else client_text(header.client_id)
        return header

    def _forward(self, api: Api, frame: bytearray, in_flight: InFlightRequest) -> None:
        self._counts.slow_requests[api.name] += 1
        self._clock.awaits(api.key, in_flight, self._clock.now())
        self._forwarding.frame(frame, in_flight)

    def _produce(self, frame: bytearray) -> None:
        """Handle a Produce request. Its header is nearly always that of the previous one."""
        version = self._version
        self._is_unmet = False
        came = self._clock.now()
        fast = self._fast
        if fast is not None:
            verdict = fast.validate_gathered(frame, version)
            if verdict != FALL_BACK:
                self._identity.client_id = self._header_client_id
                self._metering.take(len(frame))
                in_flight = fast.new_in_flight(self._correlation_id, version) if verdict == GOOD else None
                if in_flight is not None:
                    self._metering.with_throttle(in_flight, version)
                self._forwarding.produce(frame, in_flight)
                self._clock.sent(_PRODUCE.key, came, in_flight)
                return
        header_version = 2 if version >= _PRODUCE.flexible_since else 1
        body_at = HEAD_BYTES + len(self._header_rest)
        decision = QuotaDecision.PROCEED
        if self._knows_header_of(version, frame):
            self._identity.client_id = self._header_client_id
        else:
            body_at = self._header(_PRODUCE, version, frame).body_at
            decision = self._metering.admit(self._identity.for_rules())
            if decision is QuotaDecision.REJECT:
                self._delivery.in_turn(InFlightRequest(closes=True))
                return
            self._reads_more()
            if body_at <= _REMEMBERED_HEADER_BYTES:
                self._header_version = header_version
                self._header_generation = self._produce_handler.rules_generation
                self._header_rest = bytes(frame[HEAD_BYTES:body_at])
                self._header_client_id = self._identity.client_id
                if fast is not None and not self._produce_handler.is_exempt:
                    fast.remember(header_version, self._header_rest)
                    fast.meter(self._metering.passed if self._metering.is_on else None)
        waits = decision is QuotaDecision.WAIT
        steps = self._produce_handler.handle(frame, version, self._correlation_id, body_at, waits)
        self._runner.run(steps, self._perform)

    def _reads_more(self) -> None:
        """Use the larger read buffer, because the client is known."""
        if self._known_client_buffer is not None:
            self._client.read_into(self._known_client_buffer)
            self._known_client_buffer = None

    def _knows_header_of(self, version: int, frame: bytearray | memoryview) -> bool:
        """Return whether the header and the rules are the same as for the previous Produce request."""
        rest = self._header_rest
        return (
            (2 if version >= _PRODUCE.flexible_since else 1) == self._header_version
            and self._header_generation == self._produce_handler.rules_generation
            and bytes(frame[HEAD_BYTES : HEAD_BYTES + len(rest)]) == rest
        )

    def _api_versions(self, api: Api, version: int, frame: bytearray) -> None:
        header = self._header(api, version, frame)
        with suppress(MalformedMessage):  # the broker responds to it, or closes the connection
            software = software_in(frame, version, header.body_at)
            if software is not None:
                name, software_version = map(client_text, software)
                self._identity.software_name, self._identity.software_version = name, software_version
        self._forward(api, frame, InFlightRequest(header.correlation_id, partial(cut_down_versions, version)))

    def _too_new_api_versions(self, api: Api, correlation_id: int, _frame: bytearray) -> None:
        """Respond to an unknown version without parsing its body."""
        response = unsupported_api_versions(correlation_id, api.max_version)
        self._delivery.in_turn(InFlightRequest(response=response))

    def _sasl_request(self, api: Api, version: int, frame: bytearray) -> None:
        header = self._header(api, version, frame)
        if api.key == ApiKey.SASL_HANDSHAKE:
            self._sasl.on_handshake(version, frame, header.body_at)
            self._forward(api, frame, InFlightRequest(header.correlation_id))
            return
        login = self._sasl.on_authenticate(version, frame, header.body_at)
        self._run_login(self._authenticate(login, api, version), api, frame, header.correlation_id)

    def _raw_token(self, frame: bytearray) -> None:
        login = self._sasl.on_token(bytes(frame))
        self._run_login(self._send_token(login), _SASL_AUTHENTICATE, frame, ANY_CORRELATION_ID)

    def _authenticate(self, login: Login, api: Api, version: int) -> Steps[Parts]:
        response: bytearray = yield LoginForwarded()
        at = response_body_at(response, api.response_header_version(version))
        failure = self._sasl.on_authenticate_response(login, version, response, at)
        if failure is not None:
            self._log.login_rejected(self._identity, failure)
            self._counts.request_errors[api.name, _LOGIN_REJECTED] += 1
        else:
            self._may_be_somebody_else()
        return (response,)

    def _send_token(self, login: Login) -> Steps[Parts]:
        response: bytearray = yield LoginForwarded()
        self._sasl.on_token_accepted(login, bytes(response))
        self._may_be_somebody_else()
        return (response,)

    def _run_login(self, steps: Steps[Parts], api: Api, frame: bytearray, correlation_id: int) -> None:
        """Run the handler of a login. Only this call holds the frame, which contains a secret."""

        def forward(finish: Finish) -> None:
            self._forward(api, frame, InFlightRequest(correlation_id, finish))

        self._runner.run(steps, lambda _: AwaitedResponse(forward))

    def _may_be_somebody_else(self) -> None:
        """Forget the header after an accepted token, because quotas and exemptions depend on the principal."""
        self._header_version = -1
        if self._fast is not None:
            self._fast.remember(-1, b"")
        if not self._identity.is_verified and self._produce_handler.names_principals:
            self._log.unverified_principal(self._identity)
