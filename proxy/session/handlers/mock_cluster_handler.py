"""Rejects the requests that a mock cluster does not support, with a message for the client (`sluicegate sandbox`)."""

from sluicegate.protocol.api import Api, ApiHandling
from sluicegate.protocol.headers import build_response_header
from sluicegate.proxy.responses.mock_cluster import REJECTED_APIS, rejection_of
from sluicegate.proxy.session.broker_errors import expect_code
from sluicegate.proxy.session.client.identity import ClientIdentity, read_header
from sluicegate.proxy.session.effect import Steps
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.produce.effect_performer import ProduceEffects
from sluicegate.proxy.session.produce.effects import ForwardAsItCame, Respond
from sluicegate.proxy.session.reports import SessionCounts, SessionLines
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.proxy.session.request_runner import RequestRunner


class MockClusterHandler:
    """One session's handler. It has the interface of TopicChangeHandler."""

    def __init__(
        self,
        message: str,
        identity: ClientIdentity,
        runner: RequestRunner,
        effects: ProduceEffects,
        counts: SessionCounts,
        clock: RequestClock,
        log: SessionLines,
    ) -> None:
        """`message` is the error message of rejected requests."""
        self._message = message
        self._identity = identity
        self._runner = runner
        self._perform = effects.perform
        self._counts = counts
        self._clock = clock
        self._log = log

    def gathers(self, handling: ApiHandling) -> bool:
        """Return whether the handler needs complete requests for APIs with this handling."""
        return handling in (ApiHandling.GUARD, ApiHandling.DESCRIBE, ApiHandling.HEARTBEAT)

    def take(self, api: Api, version: int, correlation_id: int, frame: bytearray) -> None:
        """Forward or reject a complete request. Raises SenderError if a rejected request is malformed."""
        self._counts.slow_requests[api.name] += 1
        self._runner.run(self._handle(api, version, correlation_id, frame), self._perform)

    def _handle(self, api: Api, version: int, correlation_id: int, frame: bytearray) -> Steps[None]:
        if api not in REJECTED_APIS:  # the mock cluster supports it, or closes the connection
            in_flight = expect_code(InFlightRequest(correlation_id), api.key, version)
            self._clock.sent(api.key, self._clock.now(), in_flight)
            yield from ForwardAsItCame(frame, in_flight)
            return
        body = memoryview(frame)[read_header(self._identity, api, version, frame).body_at :]
        self._log.request_not_supported(self._identity, api.name, self._message)
        response = rejection_of(api, version, body, self._message)
        header = build_response_header(correlation_id, api.response_header_version(version))
        yield from Respond(InFlightRequest(response=header + response))
