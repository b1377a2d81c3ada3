"""Receives Produce requests: reads the client id, applies quotas, and chooses between the fast path and the handler.

A request's header nearly always equals that of the previous request, so it is compared before it is parsed.
"""

from functools import partial
from typing import TYPE_CHECKING

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import HEAD_BYTES, parse_request_header
from sluicegate.proxy.fastpath.paths import FALL_BACK, GOOD
from sluicegate.proxy.session.client.client_details import holder_of
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.identity import ClientIdentity, read_header
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.delivery import Delivery
from sluicegate.proxy.session.forwarding import Forwarding
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.produce.effect_performer import ProduceEffects
from sluicegate.proxy.session.produce.handler import NO_QUOTA, ProduceHandler
from sluicegate.proxy.session.quotas.metering import Metering, QuotaDecision
from sluicegate.proxy.session.reports import SessionLines
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.proxy.session.request_runner import RequestRunner
from sluicegate.validation.in_force import RulesInForce

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import FastRequests
    from sluicegate.validation.ordinary import OrdinaryRequests

_PRODUCE = APIS[ApiKey.PRODUCE]
# This size is enough for most client ids. Longer headers are parsed each time, so that no connection keeps more.
_REMEMBERED_HEADER_BYTES = 1024
# A version 1 header ends with the client id. Later versions begin in the same way.
_WITH_CLIENT_ID = 1


class ProduceIntake:
    """Receives one session's Produce requests."""

    def __init__(
        self,
        identity: ClientIdentity,
        client: Connection,
        metering: Metering,
        forwarding: Forwarding,
        delivery: Delivery,
        runner: RequestRunner,
        handler: ProduceHandler,
        effects: ProduceEffects,
        rules: RulesInForce,
        clock: RequestClock,
        log: SessionLines,
        ordinary: "OrdinaryRequests | None",
        fast: "FastRequests | None",
        known_client_buffer: memoryview | None,
    ) -> None:
        """`known_client_buffer` is the read buffer once the client is known. It is None if the
        buffer does not change.
        """
        self._identity = identity
        self._client = client
        self._metering = metering
        self._forwarding = forwarding
        self._delivery = delivery
        self._runner = runner
        self._handler = handler
        self._perform = effects.perform
        self._rules = rules
        self._clock = clock
        self._log = log
        self._ordinary = ordinary
        self._fast = fast
        self._known_client_buffer = known_client_buffer
        self._version = 0
        self._correlation_id = 0
        self._is_unmet = False
        self._header_version = -1
        self._header_rest = b""
        self._header_client_id: str | None = None
        self._header_generation = -1

    def begin(self, version: int, correlation_id: int) -> None:
        """Expect the rest of a request whose first bytes have arrived."""
        self._version = version
        self._correlation_id = correlation_id
        self._is_unmet = self._metering.may_be_on

    def check_partial_request(self) -> None:
        """Read the client id of a partial request, and pause the client if it exceeds a quota."""
        begun = self._client.begun if self._is_unmet else None
        if begun is None:
            return
        with begun:
            if self._knows_header_of(self._version, begun):
                self._is_unmet = False
                return
            try:
                client_id = parse_request_header(begun, _WITH_CLIENT_ID).client_id
            except MalformedMessage:  # the rest of the header has not arrived yet
                return
        self._is_unmet = False
        self._identity.client_id = None if client_id is None else client_text(client_id)
        match self._metering.admit(self._identity.for_rules()):
            case QuotaDecision.WAIT:
                self._client.pause(PauseReason.QUOTA_QUEUE)
                self._metering.wait_for_turn(partial(self._client.resume, PauseReason.QUOTA_QUEUE))
            case QuotaDecision.REJECT:
                self._delivery.close_in_turn(NO_QUOTA)

    def take(self, frame: bytearray) -> None:
        """Forward a complete request on the fast path, or run its handler."""
        self._is_unmet = False
        arrived = self._clock.now()
        if self._fast is not None and self._passes(self._fast, frame, arrived):
            return
        version = self._version
        body_at = HEAD_BYTES + len(self._header_rest)
        decision = QuotaDecision.PROCEED
        if self._knows_header_of(version, frame):
            self._identity.client_id = self._header_client_id
        else:
            body_at = read_header(self._identity, _PRODUCE, version, frame).body_at
            decision = self._metering.admit(self._identity.for_rules())
            self._reads_more()
            if body_at <= _REMEMBERED_HEADER_BYTES:
                self._remember(version, bytes(frame[HEAD_BYTES:body_at]))
        steps = self._handler.handle(frame, version, self._correlation_id, body_at, decision)
        self._runner.run(steps, self._perform)

    def principal_may_change(self) -> None:
        """Forget the header after an accepted token, because quotas and exemptions depend on the principal."""
        self._header_version = -1
        if self._fast is not None:
            self._fast.forget()
        doubt = self._identity.doubt
        if doubt is not None and self._rules.rulebook.in_file.names_principals:
            self._log.unverified_principal(self._identity, doubt)

    def end(self) -> None:
        """Clean up at the end of the session."""
        self._handler.end()

    def _passes(self, fast: "FastRequests", frame: bytearray, arrived: float) -> bool:
        """Validate and forward a request on the fast path, and return whether this succeeded."""
        version = self._version
        verdict = fast.validate_gathered(frame, version)
        if verdict == FALL_BACK:
            return False
        self._identity.client_id = self._header_client_id
        self._metering.take(len(frame))
        in_flight = fast.new_in_flight(self._correlation_id, version) if verdict == GOOD else None
        if in_flight is not None:
            self._metering.with_throttle(in_flight, version)
        self._forwarding.produce(frame, in_flight)
        self._clock.sent(_PRODUCE.key, arrived, in_flight)
        return True

    def _reads_more(self) -> None:
        """Switch to the larger read buffer, because the client is known."""
        if self._known_client_buffer is not None:
            self._client.read_into(self._known_client_buffer)
            self._known_client_buffer = None

    def _remember(self, version: int, rest: bytes) -> None:
        """Remember a header's bytes from the ninth on, with its client and that client's rules."""
        self._header_version = _header_version_of(version)
        self._header_generation = self._rules.generation
        self._header_rest = rest
        self._header_client_id = self._identity.client_id
        if self._fast is not None and self._ordinary is not None and not self._is_exempt:
            sender = self._ordinary.sender(self._identity.client_id, holder_of(self._identity))
            self._fast.remember(self._header_version, rest, sender)
            self._fast.meter(self._metering.passed if self._metering.is_on else None)

    @property
    def _is_exempt(self) -> bool:
        """Whether this client is exempt from all rules."""
        rulebook = self._rules.rulebook
        return rulebook.depends_on_client and rulebook.exempts(self._identity.for_rules())

    def _knows_header_of(self, version: int, frame: bytearray | memoryview) -> bool:
        """Return whether the header and the rules are the same as for the previous request."""
        rest = self._header_rest
        return (
            _header_version_of(version) == self._header_version
            and self._header_generation == self._rules.generation
            and bytes(frame[HEAD_BYTES : HEAD_BYTES + len(rest)]) == rest
        )


def _header_version_of(version: int) -> int:
    return 2 if version >= _PRODUCE.flexible_since else 1
