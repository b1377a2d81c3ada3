"""The handler of a Produce request: `ProduceHandler.handle`.

It is a generator without I/O. It yields effects (`sluicegate.proxy.session.produce.effects`); a runner performs them
and sends the results (`sluicegate.proxy.session.request_runner`).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Protocol

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_request import ProduceRequest, check_record_count, walk_produce_request
from sluicegate.protocol.produce_response import produce_body_at
from sluicegate.protocol.produce_versions import TOPIC_ID_SINCE
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.responses.produce_responses import PartlyRejected
from sluicegate.proxy.session.broker_errors import expect_code
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.dependencies import OnInternalError, ProduceDependencies
from sluicegate.proxy.session.in_flight import Finish, InFlightRequest
from sluicegate.proxy.session.pause_reason import Pausable, PauseReason
from sluicegate.proxy.session.produce.effects import (
    CloseInTurn,
    EarlierResponses,
    Forward,
    ForwardAsItCame,
    QuotaTurn,
    ResolveNames,
    Respond,
    SettingsKnown,
    TopicQuotaTurn,
    Validate,
)
from sluicegate.proxy.session.produce.log_start_requests import LogStartRequests
from sluicegate.proxy.session.produce.quarantining import ProvenPartitions, Quarantining
from sluicegate.proxy.session.quotas.metering import QuotaDecision
from sluicegate.proxy.session.quotas.shares import TopicShares
from sluicegate.proxy.session.request_runner import Steps
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.previous_times import PreviousTimeInFlight
from sluicegate.validation.produce import VALID_ACKS
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import ValidatedRequest

_PRODUCE = ApiKey.PRODUCE.value
# The bytes of rejections that one connection may keep before it is paused.
_MOST_KEPT_BYTES = 64 * 1024
NO_QUOTA = "a quota has no room for the client; the log says which"


class QuotaMeter(Protocol):
    """Charges requests to the quotas of clients and topics."""

    def take(self, size: int) -> None: ...

    def with_throttle(self, in_flight: InFlightRequest, version: int) -> InFlightRequest: ...

    def shares_of_topics(
        self, request: ProduceRequest, policy_of: Callable[[str], TopicPolicy], names: Mapping[bytes, str]
    ) -> TopicShares: ...

    def must_wait_for_topics(self, shares: TopicShares, size: int) -> QuotaDecision: ...

    def take_of_topics(self, shares: TopicShares) -> None: ...


class StoredTimesSink(Protocol):
    """Learns the times of batches that the broker has stored."""

    def expect(self, in_flight: InFlightRequest, request: ProduceRequest, validated: ValidatedRequest) -> None: ...


class ProduceHandler:
    """Handles the Produce requests of one session. `plain_finish` returns how to finish the response to an unchanged
    request; `report_unvalidated` logs the internal error because of which a request is forwarded unvalidated.
    """

    def __init__(
        self,
        shared: ProduceDependencies,
        identity: ClientIdentity,
        client: Pausable,
        meter: QuotaMeter,
        stored_times: StoredTimesSink,
        plain_finish: Callable[[int], Finish | None],
        report_unvalidated: Callable[[BaseException], None],
    ) -> None:
        self._shared = shared
        self._identity = identity
        self._meter = meter
        self._stored_times = stored_times
        self._plain_finish = plain_finish
        self._report_unvalidated = report_unvalidated
        self._proven = ProvenPartitions(shared.names, shared.now_ms)
        self._quarantining = Quarantining(identity, shared.validations, shared.now_ms, self._proven)
        self._log_starts = LogStartRequests(shared.names.by_id, shared.now_ms)
        self._kept = _KeptRejections(client)

    def handle(
        self, frame: bytearray, version: int, correlation_id: int, body_at: int, of_client: QuotaDecision
    ) -> Steps[None]:
        """Handle a complete request; its body starts at `body_at`. Raises SenderError if it is malformed.

        `of_client`: what the client's quota decides.
        """
        shared = self._shared
        if not (yield from self._within_quota(of_client, QuotaTurn())):
            return
        shared.counts.slow_requests["Produce"] += 1
        self._meter.take(len(frame))
        came = shared.clock.now()

        request = walk_produce_request(frame, version, body_at, shared.max_request_partitions)
        check_record_count(request, shared.max_request_records)

        if missing := self._ids_without_a_name(request):
            yield ResolveNames(missing)
        if shared.settings is not None:
            yield SettingsKnown(tuple(name for name in self._names(request) if name is not None))

        shares = self._shares_of_topics(request)
        decision = self._meter.must_wait_for_topics(shares, len(frame)) if shares else QuotaDecision.PROCEED
        if not (yield from self._within_quota(decision, TopicQuotaTurn(shares, len(frame)))):
            return
        self._meter.take_of_topics(shares)

        try:
            dispatch = yield from self._validated(request)
        except SenderError:
            raise
        except Exception as error:
            if shared.on_internal_error is OnInternalError.CLOSE or shared.rules.rulebook.in_file.has_sensitive_fields:
                raise
            self._report_unvalidated(error)
            in_flight = self._plain_in_flight(request, correlation_id)
            yield ForwardAsItCame(frame, in_flight)
            shared.clock.sent(_PRODUCE, came, in_flight)
            return
        if dispatch is None:
            return

        if dispatch.dead_letters:
            yield from self._quarantining.keep(request, correlation_id, dispatch)

        shared.validations.validated(self._identity, request, dispatch.validated)
        awaited = yield from self._dispatch(request, correlation_id, dispatch)
        shared.clock.sent(_PRODUCE, came, awaited)
        if shared.traces is not None:
            shared.traces.sent(self._identity, request, dispatch.validated, came, shared.clock.now(), awaited)
        if request.acks == 0 and dispatch.partly is not None and dispatch.partly.rejects_anything:
            shared.counts.acks_0_closed += 1
            yield CloseInTurn("a rejection for which acks=0 leaves no response")

    def _within_quota(self, decision: QuotaDecision, turn: QuotaTurn | TopicQuotaTurn) -> Steps[bool]:
        """Wait for a request's turn under a quota, or close the connection. Return whether to continue."""
        if decision is QuotaDecision.REJECT:
            yield CloseInTurn(NO_QUOTA)
            return False
        if decision is QuotaDecision.WAIT:
            yield turn
        return True

    def _validated(self, request: ProduceRequest) -> Steps[Dispatch | None]:
        """Validate a request, after the broker's responses to earlier requests if its times depend on their batches."""
        while True:
            try:
                dispatch: Dispatch | None = yield Validate(request, self._known_client())
            except PreviousTimeInFlight:
                yield EarlierResponses()
            else:
                return dispatch

    def _dispatch(
        self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch
    ) -> Steps[InFlightRequest | None]:
        """Forward a request unchanged, fixed, or with stand-ins. Return the request in flight."""
        partly = dispatch.partly
        if partly is None:
            self._teach(request)
            in_flight = self._plain_in_flight(request, correlation_id)
            if in_flight is not None:
                self._stored_times.expect(in_flight, request, dispatch.validated)
            if dispatch.parts is None:
                yield ForwardAsItCame(request.frame, in_flight)
            else:
                yield Forward(dispatch.parts(), () if in_flight is None else (in_flight,))
            return in_flight
        assert dispatch.parts is not None
        if request.acks == 0:
            yield Forward(dispatch.parts(), ())
            return None
        alone = partly.response_alone(self._proven.since, correlation_id, self._shared.now_ms())
        if alone is not None:
            yield Respond(self._meter.with_throttle(InFlightRequest(response=alone), request.version))
            return None
        before = self._log_starts.about(partly)
        in_flight = InFlightRequest(correlation_id, partial(self._merged, partly, request.version, request.acks))
        in_flight = self._meter.with_throttle(in_flight, request.version)
        self._stored_times.expect(in_flight, request, dispatch.validated)
        self._kept.begins(partly)
        yield Forward(dispatch.parts(), (*before.in_flight, in_flight), before.frames)
        return in_flight

    def _merged(self, partly: PartlyRejected, version: int, acks: int, frame: bytearray) -> Parts:
        """Return the broker's response with the rejections instead of its entries for stand-ins."""
        body_at = produce_body_at(frame, version)
        response = partly.finish(frame, body_at, self._shared.rewriter, self._identity.client_id)
        for code in partly.broker_codes:
            self._shared.broker_errors.broker_error(self._identity, _PRODUCE, code)
        self._proven.learn(partly, acks)
        self._kept.ends(partly)
        return response

    def _plain_in_flight(self, request: ProduceRequest, correlation_id: int) -> InFlightRequest | None:
        """Return the request in flight for a request without rejections; None: with acks=0 there is no response."""
        if request.acks == 0:
            return None
        finish = self._plain_finish(request.version)
        version = request.version if finish is not None else 0
        in_flight = InFlightRequest(correlation_id, finish, None, False, version)
        return self._meter.with_throttle(expect_code(in_flight, _PRODUCE, request.version), request.version)

    def _ids_without_a_name(self, request: ProduceRequest) -> list[bytes]:
        if request.version < TOPIC_ID_SINCE:
            return []
        ids = [topic.topic_id for topic in request.topics if topic.topic_id is not None]
        return self._shared.names.missing(ids, self._shared.now_ms())

    def _names(self, request: ProduceRequest) -> Iterator[str | None]:
        by_id = self._shared.names.by_id
        return (topic.name_by(by_id) for topic in request.topics)

    def _shares_of_topics(self, request: ProduceRequest) -> TopicShares:
        rulebook = self._shared.rules.rulebook
        if not rulebook.in_file.has_topic_quotas:
            return ()
        policy_of = self._shared.policy_memo.by(rulebook)
        return self._meter.shares_of_topics(request, policy_of, self._shared.names.by_id)

    def _teach(self, request: ProduceRequest) -> None:
        """Allow requests for these topics on the fast path."""
        shared = self._shared
        if shared.ordinary is None or request.acks not in VALID_ACKS:
            return
        policy_of = shared.policy_memo.by(shared.rules.rulebook)
        for topic, name in zip(request.topics, self._names(request), strict=True):
            if name is not None and is_legal_topic_name(name):
                key = topic.topic_id if topic.topic_id is not None else name.encode()
                policy = policy_of(name).ordinary
                if policy is not None:
                    shared.ordinary.add_topic(key, topic.topic_id is not None, name, policy)

    def _known_client(self) -> Client | None:
        """Return the client if the rulebook depends on it."""
        return self._identity.for_rules() if self._shared.rules.rulebook.depends_on_client else None

    def end(self) -> None:
        """Clean up at the end of the session."""
        self._log_starts.end()


class _KeptRejections:
    """Limits the bytes of rejections that are kept until the broker responds, by pausing the client."""

    def __init__(self, client: Pausable) -> None:
        self._client = client
        self._bytes = 0

    def begins(self, partly: PartlyRejected) -> None:
        self._bytes += partly.kept_bytes
        if self._bytes > _MOST_KEPT_BYTES:
            self._client.pause(PauseReason.REJECTIONS)

    def ends(self, partly: PartlyRejected) -> None:
        self._bytes -= partly.kept_bytes
        if self._bytes <= _MOST_KEPT_BYTES:
            self._client.resume(PauseReason.REJECTIONS)
