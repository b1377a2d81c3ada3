"""Handles a Produce request (`ProduceHandler.handle`).

The handler is a generator without I/O. It yields effects (`sluicegate.proxy.session.produce.effects`), and a runner
performs them and sends back the results (`sluicegate.proxy.session.request_runner`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from sluicegate.protocol.produce_versions import TOPIC_ID_SINCE
from sluicegate.protocol.records.record_limit import check_record_count
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.responses.log_starts import LogStarts
from sluicegate.proxy.responses.older_responses import OlderResponse
from sluicegate.proxy.responses.produce_responses import StandInRequest
from sluicegate.proxy.session.client.client_details import client_details
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.effect import Steps
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.produce.awaited_batches import AwaitedBatches
from sluicegate.proxy.session.produce.dependencies import OnInternalError, ProduceDependencies
from sluicegate.proxy.session.produce.effects import (
    AwaitEarlierResponses,
    AwaitQuotaTurn,
    AwaitSettings,
    AwaitTopicQuotas,
    ChargeRequest,
    ChargeTopics,
    CloseInTurn,
    CloseUnanswered,
    ExpectResponse,
    Forward,
    ForwardAsItCame,
    ReportUnvalidated,
    ResolveNames,
    Respond,
    Settle,
    TeachFastPath,
    TimeRequest,
    Validate,
)
from sluicegate.proxy.session.produce.log_start_requests import LogStartRequests
from sluicegate.proxy.session.produce.own_topics import refused_request
from sluicegate.proxy.session.produce.quarantining import ProvenPartitions, Quarantining
from sluicegate.proxy.session.quotas.metering import QuotaDecision
from sluicegate.proxy.session.quotas.shares import TopicShares
from sluicegate.validation.outcome import Waiver
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.previous_times import PreviousTimeInFlight
from sluicegate.validation.produce.request import waived_request
from sluicegate.validation.rules.rule import Client

NO_QUOTA = "a quota has no room for the client; see the log for its name"


class QuotaMeter(Protocol):
    """The quotas of clients and topics, as the handler uses them."""

    def with_throttle(self, in_flight: InFlightRequest, version: int) -> InFlightRequest: ...

    def shares_of_topics(
        self, request: ProduceRequest, policy_of: Callable[[str], TopicPolicy], names: Mapping[bytes, str]
    ) -> TopicShares: ...

    def must_wait_for_topics(self, shares: TopicShares, size: int) -> QuotaDecision: ...


class ProduceHandler:
    """Handles one session's Produce requests.

    It only reads its dependencies. All changes that it makes are effects.
    """

    def __init__(
        self, shared: ProduceDependencies, identity: ClientIdentity, meter: QuotaMeter, proven: ProvenPartitions
    ) -> None:
        self._shared = shared
        self._identity = identity
        self._meter = meter
        self._proven = proven
        self._quarantining = Quarantining(shared.now_ms, proven)
        self._log_starts = LogStartRequests(shared.names.by_id, shared.now_ms)

    def handle(
        self, frame: bytearray, version: int, correlation_id: int, body_at: int, of_client: QuotaDecision
    ) -> Steps[None]:
        """Handle a complete request, whose body starts at `body_at`. Raises SenderError if it is malformed.

        `of_client` is the client quota's decision.
        """
        shared = self._shared
        if not (yield from self._within_quota(of_client, AwaitQuotaTurn())):
            return
        yield from ChargeRequest(len(frame))
        arrived = shared.clock.now()

        request = walk_produce_request(frame, version, body_at, shared.max_request_partitions)
        check_record_count(request, shared.max_request_records)

        if missing := self._ids_without_a_name(request):
            yield from ResolveNames(missing)
        if not shared.own_topics.isdisjoint(self._names(request)):
            yield from self._refuse(request, correlation_id, arrived)
            return
        if shared.settings is not None:
            yield from AwaitSettings(tuple(name for name in self._names(request) if name is not None))

        shares = self._shares_of_topics(request)
        decision = self._meter.must_wait_for_topics(shares, len(frame)) if shares else QuotaDecision.PROCEED
        if not (yield from self._within_quota(decision, AwaitTopicQuotas(shares, len(frame)))):
            return
        yield from ChargeTopics(shares)

        dispatch = yield from self._validated_or_waived(request)
        if dispatch is None:
            return
        if dispatch.conversion is not None:
            request = dispatch.conversion.request

        if dispatch.dead_letters:
            yield from self._quarantining.keep(request, correlation_id, dispatch)

        batches = AwaitedBatches(
            client_details(self._identity),
            request,
            dispatch.validated,
            shared.names.by_id,
            shared.now_ms(),
            shared.clock.now() - arrived,
            shared.max_event_records,
            None if dispatch.conversion is None else dispatch.conversion.version,
        )
        awaited = yield from self._dispatch(request, correlation_id, dispatch, batches)
        yield from TimeRequest(arrived, awaited)
        if awaited is None:
            errors = {} if dispatch.stand_in_request is None else dispatch.stand_in_request.client_errors
            yield from Settle(batches.settled(errors, None))
        if request.acks == 0 and dispatch.stand_in_request is not None and dispatch.stand_in_request.rejects_anything:
            yield from CloseUnanswered()

    def _refuse(self, request: ProduceRequest, correlation_id: int, arrived: float) -> Steps[None]:
        """Reject a request that contains batches for the proxies' own topics. No part of it is forwarded."""
        shared = self._shared
        now_ms = shared.now_ms()
        validated = refused_request(request, shared.own_topics, shared.names.by_id, now_ms)
        batches = AwaitedBatches(
            client_details(self._identity),
            request,
            validated,
            shared.names.by_id,
            now_ms,
            shared.clock.now() - arrived,
            shared.max_event_records,
        )
        stand_ins = StandInRequest(request, validated, LogStarts(), now_ms, lambda: None)
        response = stand_ins.response_now(correlation_id)
        if request.acks != 0:
            yield from Respond(self._meter.with_throttle(InFlightRequest(response=response), request.version))
        yield from TimeRequest(arrived, None)
        yield from Settle(batches.settled(stand_ins.client_errors, None))
        if request.acks == 0:
            yield from CloseUnanswered()

    def _within_quota(self, decision: QuotaDecision, turn: AwaitQuotaTurn | AwaitTopicQuotas) -> Steps[bool]:
        """Wait for a request's turn under a quota, or close the connection. Return whether to continue."""
        if decision is QuotaDecision.REJECT:
            yield from CloseInTurn(NO_QUOTA)
            return False
        if decision is QuotaDecision.WAIT:
            yield from turn
        return True

    def _validated_or_waived(self, request: ProduceRequest) -> Steps[Dispatch | None]:
        """Validate a request. After an internal error it may be forwarded unvalidated, depending on the configuration.

        The result is None if the validation was abandoned.
        """
        shared = self._shared
        try:
            return (yield from self._validated(request))
        except SenderError:
            raise
        except Exception as error:
            must_not_pass = shared.rules.rulebook.in_file.has_sensitive_fields or shared.scheduler.must_convert(request)
            if shared.on_internal_error is OnInternalError.CLOSE or must_not_pass:
                raise
            yield from ReportUnvalidated(error)
            return Dispatch(waived_request(request, Waiver.INTERNAL_ERROR), None, None)

    def _validated(self, request: ProduceRequest) -> Steps[Dispatch | None]:
        """Validate a request.

        If its times depend on batches in earlier requests, wait for the broker's responses to those first.
        """
        while True:
            try:
                dispatch = yield from Validate(request, self._known_client())
            except PreviousTimeInFlight:
                yield from AwaitEarlierResponses()
            else:
                return dispatch

    def _dispatch(
        self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch, batches: AwaitedBatches
    ) -> Steps[InFlightRequest | None]:
        """Forward a request unchanged, fixed, or with stand-ins.

        Return the request in flight, or None if no broker response is expected.
        """
        stand_in_request = dispatch.stand_in_request
        if stand_in_request is None:
            if Waiver.INTERNAL_ERROR not in dispatch.validated.waived.values():
                yield from TeachFastPath(request)
            if request.acks == 0:
                in_flight = None
            else:
                in_flight = yield from ExpectResponse(request, correlation_id, batches, dispatch)
            if dispatch.parts is None:
                yield from ForwardAsItCame(request.frame, in_flight)
            else:
                yield from Forward(dispatch.parts(), () if in_flight is None else (in_flight,))
            return in_flight
        assert dispatch.parts is not None
        if request.acks == 0:
            yield from Forward(dispatch.parts(), ())
            return None
        alone = stand_in_request.response_alone(self._proven.since, correlation_id, self._shared.now_ms())
        if alone is not None:
            version = request.version
            if dispatch.conversion is not None:
                alone = b"".join(OlderResponse(dispatch.conversion).for_client((alone,)))
                version = dispatch.conversion.version
            yield from Respond(self._meter.with_throttle(InFlightRequest(response=alone), version))
            return None
        before = self._log_starts.about(stand_in_request)
        in_flight = yield from ExpectResponse(request, correlation_id, batches, dispatch)
        yield from Forward(dispatch.parts(), (*before.in_flight, in_flight), before.frames)
        return in_flight

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
        policy_of = self._shared.policy_memo.policies_by(rulebook)
        return self._meter.shares_of_topics(request, policy_of, self._shared.names.by_id)

    def _known_client(self) -> Client | None:
        """Return the client if the rulebook depends on it. Otherwise return None."""
        return self._identity.for_rules() if self._shared.rules.rulebook.depends_on_client else None

    def end(self) -> None:
        """Clean up at the end of the session."""
        self._log_starts.end()
