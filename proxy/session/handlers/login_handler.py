"""Handles the requests in which a client names its software (ApiVersions) and its principal (SASL)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sluicegate.protocol.api import APIS, Api, ApiKey
from sluicegate.protocol.before_login import software_in
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import response_body_at
from sluicegate.proxy.responses.api_versions import unsupported_api_versions
from sluicegate.proxy.session.broker_errors import expect_code
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.identity import ClientIdentity, LoginAttempt, SaslTracker, read_header
from sluicegate.proxy.session.delivery import Delivery
from sluicegate.proxy.session.effect import Effect, Steps
from sluicegate.proxy.session.forwarding import Forwarding
from sluicegate.proxy.session.in_flight import ANY_CORRELATION_ID, Finish, InFlightRequest
from sluicegate.proxy.session.produce.intake import ProduceIntake
from sluicegate.proxy.session.reports import SessionCounts, SessionLines
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.proxy.session.request_runner import AwaitedResponse, RequestRunner

_SASL_AUTHENTICATE = APIS[ApiKey.SASL_AUTHENTICATE]  # also used for raw tokens, which have no header
_LOGIN_REJECTED = "SASL_AUTHENTICATION_FAILED"


@dataclass(frozen=True, slots=True)
class LoginForwarded(Effect[bytearray]):
    """Forward the current login request. The result is the broker's response."""


class LoginHandler:
    """Handles one session's logins. Each method handles a complete frame."""

    def __init__(
        self,
        identity: ClientIdentity,
        sasl: SaslTracker,
        forwarding: Forwarding,
        delivery: Delivery,
        runner: RequestRunner,
        produce: ProduceIntake,
        counts: SessionCounts,
        clock: RequestClock,
        log: SessionLines,
        offered_versions: Callable[[int, bytearray], Parts],
    ) -> None:
        """`offered_versions` returns a client's ApiVersions response, from the version and the
        broker's own response.
        """
        self._offered_versions = offered_versions
        self._identity = identity
        self._sasl = sasl
        self._forwarding = forwarding
        self._delivery = delivery
        self._runner = runner
        self._produce = produce
        self._counts = counts
        self._clock = clock
        self._log = log

    def api_versions(self, api: Api, version: int, frame: bytearray) -> None:
        """Read the client's software from the request, and remove unsupported APIs from the broker's response."""
        header = read_header(self._identity, api, version, frame)
        with suppress(MalformedMessage):  # the broker responds to a malformed request or closes the connection
            software = software_in(frame, version, header.body_at)
            if software is not None:
                name, software_version = map(client_text, software)
                self._identity.software_name, self._identity.software_version = name, software_version
        in_flight = InFlightRequest(header.correlation_id, partial(self._offered_versions, version))
        self._forward(api, frame, expect_code(in_flight, api.key, version))

    def too_new_api_versions(self, api: Api, correlation_id: int, _frame: bytearray) -> None:
        """Respond to an unknown version of ApiVersions without parsing its body."""
        response = unsupported_api_versions(correlation_id, api.max_version)
        self._delivery.in_turn(InFlightRequest(response=response))

    def sasl_request(self, api: Api, version: int, frame: bytearray) -> None:
        """Handle SaslHandshake or SaslAuthenticate."""
        header = read_header(self._identity, api, version, frame)
        if api.key == ApiKey.SASL_HANDSHAKE:
            self._sasl.on_handshake(version, frame, header.body_at)
            self._forward(api, frame, expect_code(InFlightRequest(header.correlation_id), api.key, version))
            return
        login = self._sasl.on_authenticate(version, frame, header.body_at)
        in_flight = expect_code(InFlightRequest(header.correlation_id), api.key, version)
        self._run(self._authenticate(login, api, version), api, frame, in_flight)

    def raw_token(self, frame: bytearray) -> None:
        """Handle a token without a header (after SaslHandshake v0)."""
        login = self._sasl.on_token(bytes(frame))
        self._run(self._send_token(login), _SASL_AUTHENTICATE, frame, InFlightRequest(ANY_CORRELATION_ID))

    def _authenticate(self, login: LoginAttempt, api: Api, version: int) -> Steps[Parts]:
        response = yield from LoginForwarded()
        at = response_body_at(response, api.response_header_version(version))
        failure = self._sasl.on_authenticate_response(login, version, response, at)
        if failure is not None:
            self._log.login_rejected(self._identity, failure)
            self._counts.request_errors[api.name, _LOGIN_REJECTED] += 1
        else:
            self._produce.principal_may_change()
        return (response,)

    def _send_token(self, login: LoginAttempt) -> Steps[Parts]:
        response = yield from LoginForwarded()
        self._sasl.on_token_accepted(login, bytes(response))
        self._produce.principal_may_change()
        return (response,)

    def _run(self, steps: Steps[Parts], api: Api, frame: bytearray, in_flight: InFlightRequest) -> None:
        """Run a login's handler. No other code keeps the frame, which contains a secret."""

        def forward(finish: Finish) -> None:
            in_flight.finish_with(finish)
            self._forward(api, frame, in_flight)

        self._runner.run(steps, lambda _: AwaitedResponse(forward))

    def _forward(self, api: Api, frame: bytearray, in_flight: InFlightRequest) -> None:
        self._counts.slow_requests[api.name] += 1
        self._clock.awaits(api.key, in_flight, self._clock.now())
        self._forwarding.frame(frame, in_flight)
