"""Performs the Produce handlers' effects on connections, threads and other sessions."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.responses.older_responses import OlderResponse
from sluicegate.proxy.responses.produce_responses import most_entries
from sluicegate.proxy.responses.topic_names import metadata_request, names_in
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.effect import Effect
from sluicegate.proxy.session.forwarding import Forwarding
from sluicegate.proxy.session.in_flight import Finish, InFlightRequest
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.produce.dependencies import ProduceDependencies
from sluicegate.proxy.session.produce.effects import (
    AskBroker,
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
    LearnStoredTimes,
    ReleaseMemory,
    ReportBrokerErrors,
    ReportNotStored,
    ReportUnvalidated,
    ResolveNames,
    Respond,
    Settle,
    StoreBadRecords,
    TeachFastPath,
    TimeRequest,
    Validate,
)
from sluicegate.proxy.session.produce.response_handler import ForwardedRequest, ProduceResponseHandler
from sluicegate.proxy.session.produce.response_memory import ResponseMemory
from sluicegate.proxy.session.produce.stored_times import StoredTimes
from sluicegate.proxy.session.produce.thread_validation import ValidationInThread
from sluicegate.proxy.session.quotas.shares import TopicShares, Wake
from sluicegate.proxy.session.request_runner import Resume, Wait, run_at_once
from sluicegate.validation.produce.request import VALID_ACKS

_OUR_CORRELATION_ID = -1
_PRODUCE = ApiKey.PRODUCE.value


class SessionQuotas(Protocol):
    """Charges requests to quotas, queues sessions over a quota, and reports throttle times in responses."""

    def take(self, size: int) -> None: ...

    def charge_topics(self, shares: TopicShares) -> None: ...

    def with_throttle(self, in_flight: InFlightRequest, version: int) -> InFlightRequest: ...

    def wait_for_turn(self, wake: Wake) -> None: ...

    def wait_for_topics(self, shares: TopicShares, size: int, wake: Wake) -> None: ...


class Responses(Protocol):
    """Queues the proxy's own responses in order."""

    def in_turn(self, in_flight: InFlightRequest) -> None: ...

    def close_in_turn(self, reason: str) -> None: ...


class ProduceEffects:
    """Performs the effects of one session's Produce handlers."""

    def __init__(
        self,
        shared: ProduceDependencies,
        identity: ClientIdentity,
        account: Account,
        quotas: SessionQuotas,
        forwarding: Forwarding,
        responses: Responses,
        stored_times: StoredTimes,
        kept: ResponseMemory,
        response_handler: ProduceResponseHandler,
        report_unvalidated: Callable[[BaseException], None],
    ) -> None:
        """`report_unvalidated` logs an internal error that caused a request to be forwarded unvalidated."""
        self._shared = shared
        self._identity = identity
        self._account = account
        self._quotas = quotas
        self._forwarding = forwarding
        self._responses = responses
        self._stored_times = stored_times
        self._kept = kept
        self._response_handler = response_handler
        self._report_unvalidated = report_unvalidated

    def perform(self, effect: Effect[Any]) -> object:
        """Perform an effect, as `sluicegate.proxy.session.request_runner.Perform` describes."""
        return _PERFORM[type(effect)](self, effect)

    def _wait_for_turn(self, _effect: AwaitQuotaTurn) -> Wait:
        return Wait(PauseReason.QUOTA_QUEUE, lambda resume: self._quotas.wait_for_turn(partial(resume, None)))

    def _wait_for_topics(self, effect: AwaitTopicQuotas) -> Wait:
        def ask(resume: Resume) -> None:
            self._quotas.wait_for_topics(effect.shares, effect.size, partial(resume, None))

        return Wait(PauseReason.QUOTA_QUEUE, ask)

    def _resolve_names(self, effect: ResolveNames) -> Wait:
        """Ask the broker for topic names. The broker's response arrives before its response to the Produce request."""
        names, topic_ids = self._shared.names, effect.topic_ids

        def ask(resume: Resume) -> None:
            def responded(frame: bytearray) -> None:
                names.learn(names_in(frame))
                names.note_requested(topic_ids, self._shared.now_ms())
                resume(None)

            self._forwarding.frame(
                metadata_request(topic_ids, _OUR_CORRELATION_ID), InFlightRequest(_OUR_CORRELATION_ID, responded)
            )

        return Wait(PauseReason.TOPIC_NAMES, ask)

    def _settings_known(self, effect: AwaitSettings) -> Wait | None:
        settings = self._shared.settings
        reached = None if settings is None else settings.settings_pending(effect.topics)
        return None if reached is None else Wait(PauseReason.SETTINGS, reached.add_done_callback)

    def _validate(self, effect: Validate) -> Dispatch | Wait:
        dispatch = self._shared.scheduler.validate(effect.request, effect.client, self._stored_times.previous)
        if dispatch is not None:
            return dispatch
        in_thread = ValidationInThread(self._shared, effect, self._account, self._stored_times)
        return Wait(PauseReason.VALIDATING, in_thread.ask, in_thread.abandon)

    def _earlier_responses(self, _effect: AwaitEarlierResponses) -> Wait:
        return Wait(PauseReason.STORED_TIMES, self._stored_times.when_settled)

    def _ask_broker(self, effect: AskBroker[Any]) -> Wait:
        def ask(resume: Resume) -> None:
            def responded(frame: bytearray) -> None:
                resume(effect.read(frame))

            self._forwarding.parts(effect.parts, (InFlightRequest(effect.correlation_id, responded),))

        return Wait(PauseReason.QUARANTINING, ask)

    def _quarantine(self, effect: StoreBadRecords) -> Wait:
        sink = self._shared.dead_letters
        assert sink is not None  # a rulebook with quarantine always has a sink
        return Wait(PauseReason.QUARANTINING, partial(sink.write, self._identity, effect.letters))

    def _forward_as_it_came(self, effect: ForwardAsItCame) -> None:
        self._forwarding.produce(effect.frame, effect.in_flight)

    def _forward(self, effect: Forward) -> None:
        self._forwarding.parts(effect.parts, effect.in_flight, effect.before)

    def _respond(self, effect: Respond) -> None:
        self._responses.in_turn(effect.in_flight)

    def _close_in_turn(self, effect: CloseInTurn) -> None:
        self._responses.close_in_turn(effect.reason)

    def _close_unanswered(self, _effect: CloseUnanswered) -> None:
        self._shared.counts.acks_0_closed += 1
        self._responses.close_in_turn("a rejection for which acks=0 leaves no response")

    def _charge_request(self, effect: ChargeRequest) -> None:
        self._shared.counts.slow_requests["Produce"] += 1
        self._quotas.take(effect.size)

    def _charge_topics(self, effect: ChargeTopics) -> None:
        self._quotas.charge_topics(effect.shares)

    def _teach_fast_path(self, effect: TeachFastPath) -> None:
        shared, request = self._shared, effect.request
        if shared.ordinary is None or request.acks not in VALID_ACKS:
            return
        policy_of = shared.policy_memo.policies_by(shared.rules.rulebook)
        for topic in request.topics:
            name = topic.name_by(shared.names.by_id)
            if name is not None and is_legal_topic_name(name):
                key = topic.topic_id if topic.topic_id is not None else name.encode()
                policy = policy_of(name).ordinary
                if policy is not None:
                    shared.ordinary.add_topic(key, topic.topic_id is not None, name, policy)

    def _expect_response(self, effect: ExpectResponse) -> InFlightRequest:
        request, dispatch = effect.request, effect.dispatch
        forwarded = ForwardedRequest(
            effect.batches,
            dispatch.stand_in_request,
            self._stored_times.expect(request, dispatch.validated),
            request.version,
            request.acks,
            most_entries(request),
            self._shared.clock.now(),
        )
        self._kept.keep(forwarded.kept_bytes)
        in_flight = InFlightRequest(effect.correlation_id, partial(self._handle_response, forwarded))
        in_flight.ended = partial(self._end_without_response, forwarded)
        in_flight = self._quotas.with_throttle(in_flight, request.version)
        if dispatch.conversion is not None and in_flight.finish is not None:
            older = OlderResponse(dispatch.conversion)
            in_flight.finish_with(partial(_finish_older, older, in_flight.finish))
        return in_flight

    def _handle_response(self, forwarded: ForwardedRequest, frame: bytearray) -> Parts:
        return run_at_once(self._response_handler.handle(forwarded, frame), self.perform)

    def _end_without_response(self, forwarded: ForwardedRequest) -> None:
        run_at_once(self._response_handler.end(forwarded), self.perform)

    def _report_broker_errors(self, effect: ReportBrokerErrors) -> None:
        for code in effect.codes:
            self._shared.broker_errors.broker_error(self._identity, _PRODUCE, code)

    def _release_memory(self, effect: ReleaseMemory) -> None:
        self._kept.release(effect.size)

    def _learn_stored_times(self, effect: LearnStoredTimes) -> None:
        self._stored_times.learn_from_response(effect.times, effect.errors)

    def _settle(self, effect: Settle) -> None:
        self._shared.validations.settled(effect.outcome)

    def _report_not_stored(self, effect: ReportNotStored) -> None:
        self._shared.validations.not_quarantined(self._identity, effect.letters, effect.reason)

    def _report_error(self, effect: ReportUnvalidated) -> None:
        self._report_unvalidated(effect.error)

    def _time_request(self, effect: TimeRequest) -> None:
        self._shared.clock.sent(_PRODUCE, effect.arrived, effect.in_flight)


def _finish_older(older: OlderResponse, finish: Finish, frame: bytearray) -> Parts | None:
    parts = finish(older.with_successes(frame))
    return None if parts is None else older.for_client(parts)


_PERFORM: dict[type, Callable[[ProduceEffects, Any], object]] = {
    AwaitQuotaTurn: ProduceEffects._wait_for_turn,
    AwaitTopicQuotas: ProduceEffects._wait_for_topics,
    ResolveNames: ProduceEffects._resolve_names,
    AwaitSettings: ProduceEffects._settings_known,
    Validate: ProduceEffects._validate,
    AwaitEarlierResponses: ProduceEffects._earlier_responses,
    AskBroker: ProduceEffects._ask_broker,
    StoreBadRecords: ProduceEffects._quarantine,
    ForwardAsItCame: ProduceEffects._forward_as_it_came,
    Forward: ProduceEffects._forward,
    Respond: ProduceEffects._respond,
    CloseInTurn: ProduceEffects._close_in_turn,
    CloseUnanswered: ProduceEffects._close_unanswered,
    ChargeRequest: ProduceEffects._charge_request,
    ChargeTopics: ProduceEffects._charge_topics,
    TeachFastPath: ProduceEffects._teach_fast_path,
    ExpectResponse: ProduceEffects._expect_response,
    ReportBrokerErrors: ProduceEffects._report_broker_errors,
    ReleaseMemory: ProduceEffects._release_memory,
    LearnStoredTimes: ProduceEffects._learn_stored_times,
    Settle: ProduceEffects._settle,
    ReportNotStored: ProduceEffects._report_not_stored,
    ReportUnvalidated: ProduceEffects._report_error,
    TimeRequest: ProduceEffects._time_request,
}
