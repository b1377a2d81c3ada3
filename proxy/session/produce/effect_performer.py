"""Performs the effects of the Produce handler on connections, threads and other sessions."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.responses.topic_names import metadata_request, names_in
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.scheduling.validation_thread import Job, Validation
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.dependencies import ProduceDependencies
from sluicegate.proxy.session.effect import Effect
from sluicegate.proxy.session.forwarding import Forwarding
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.produce.effects import (
    AskBroker,
    CloseInTurn,
    EarlierResponses,
    Forward,
    ForwardAsItCame,
    Quarantined,
    QuotaTurn,
    ResolveNames,
    Respond,
    SettingsKnown,
    TopicQuotaTurn,
    Validate,
)
from sluicegate.proxy.session.produce.stored_times import StoredTimes
from sluicegate.proxy.session.quotas.shares import TopicShares, Wake
from sluicegate.proxy.session.request_runner import Resume, Wait

_OUR_CORRELATION_ID = -1


class QuotaTurns(Protocol):
    """The queue of sessions with a client or topics over a quota."""

    def wait_for_turn(self, wake: Wake) -> None: ...

    def wait_for_topics(self, shares: TopicShares, size: int, wake: Wake) -> None: ...


class Responses(Protocol):
    """The proxy's own responses, in order."""

    def in_turn(self, in_flight: InFlightRequest) -> None: ...

    def close_in_turn(self, reason: str) -> None: ...


class ProduceEffects:
    """Performs the effects of one session."""

    def __init__(
        self,
        shared: ProduceDependencies,
        identity: ClientIdentity,
        account: Account,
        quota_turns: QuotaTurns,
        forwarding: Forwarding,
        responses: Responses,
        stored_times: StoredTimes,
    ) -> None:
        self._shared = shared
        self._identity = identity
        self._account = account
        self._quota_turns = quota_turns
        self._forwarding = forwarding
        self._responses = responses
        self._stored_times = stored_times

    def perform(self, effect: Effect[Any]) -> object:
        """See `sluicegate.proxy.session.request_runner.Perform`."""
        return _PERFORM[type(effect)](self, effect)

    def _wait_for_turn(self, _effect: QuotaTurn) -> Wait:
        return Wait(PauseReason.QUOTA_QUEUE, lambda resume: self._quota_turns.wait_for_turn(partial(resume, None)))

    def _wait_for_topics(self, effect: TopicQuotaTurn) -> Wait:
        def ask(resume: Resume) -> None:
            self._quota_turns.wait_for_topics(effect.shares, effect.size, partial(resume, None))

        return Wait(PauseReason.QUOTA_QUEUE, ask)

    def _resolve_names(self, effect: ResolveNames) -> Wait:
        """Ask the broker for topic names. Its response precedes the response to the Produce request."""
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

    def _settings_known(self, effect: SettingsKnown) -> Wait | None:
        settings = self._shared.settings
        reached = None if settings is None else settings.settings_pending(effect.topics)
        return None if reached is None else Wait(PauseReason.SETTINGS, reached.add_done_callback)

    def _validate(self, effect: Validate) -> Dispatch | Wait:
        dispatch = self._shared.scheduler.validate(effect.request, effect.client, self._stored_times.previous)
        if dispatch is not None:
            return dispatch
        in_thread = _ValidationInThread(self._shared, effect, self._account, self._stored_times)
        return Wait(PauseReason.VALIDATING, in_thread.ask, in_thread.abandon)

    def _earlier_responses(self, _effect: EarlierResponses) -> Wait:
        return Wait(PauseReason.STORED_TIMES, self._stored_times.when_settled)

    def _ask_broker(self, effect: AskBroker[Any]) -> Wait:
        def ask(resume: Resume) -> None:
            def responded(frame: bytearray) -> None:
                resume(effect.read(frame))

            self._forwarding.parts(effect.parts, (InFlightRequest(effect.correlation_id, responded),))

        return Wait(PauseReason.QUARANTINING, ask)

    def _quarantine(self, effect: Quarantined) -> Wait:
        sink = self._shared.dead_letters
        assert sink is not None  # a rulebook with quarantine has a sink
        return Wait(PauseReason.QUARANTINING, partial(sink.write, self._identity, effect.letters))

    def _forward_as_it_came(self, effect: ForwardAsItCame) -> None:
        self._forwarding.produce(effect.frame, effect.in_flight)

    def _forward(self, effect: Forward) -> None:
        self._forwarding.parts(effect.parts, effect.in_flight, effect.before)

    def _respond(self, effect: Respond) -> None:
        self._responses.in_turn(effect.in_flight)

    def _close_in_turn(self, effect: CloseInTurn) -> None:
        self._responses.close_in_turn(effect.reason)


_PERFORM: dict[type, Callable[[ProduceEffects, Any], object]] = {
    QuotaTurn: ProduceEffects._wait_for_turn,
    TopicQuotaTurn: ProduceEffects._wait_for_topics,
    ResolveNames: ProduceEffects._resolve_names,
    SettingsKnown: ProduceEffects._settings_known,
    Validate: ProduceEffects._validate,
    EarlierResponses: ProduceEffects._earlier_responses,
    AskBroker: ProduceEffects._ask_broker,
    Quarantined: ProduceEffects._quarantine,
    ForwardAsItCame: ProduceEffects._forward_as_it_came,
    Forward: ProduceEffects._forward,
    Respond: ProduceEffects._respond,
    CloseInTurn: ProduceEffects._close_in_turn,
}


class _ValidationInThread:
    """A validation in a thread, until it is complete or abandoned."""

    def __init__(
        self, shared: ProduceDependencies, effect: Validate, account: Account, stored_times: StoredTimes
    ) -> None:
        self._shared = shared
        self._effect = effect
        self._account = account
        self._previous = stored_times.previous
        self._job: Job | None = None

    def ask(self, resume: Resume) -> None:
        """Submit the request, and call `resume` with the result."""
        request, client = self._effect.request, self._effect.client
        self._job = self._shared.scheduler.submit(request, self._account, client, self._previous)
        self._job.future.add_done_callback(partial(self._shared.from_thread, partial(self._done, resume)))

    def abandon(self) -> None:
        """Cancel the validation; its result is not needed."""
        if self._job is not None and not self._job.is_abandoned:
            self._shared.counts.validations_abandoned += 1
            self._shared.scheduler.abandon(self._job)

    def _done(self, resume: Resume, validation: Validation) -> None:
        self._job = None  # breaks the cycle through its future
        if validation.cancelled():
            resume(None)
            return
        error = validation.exception()
        if error is not None:
            resume(None, error)
        else:
            resume(validation.result())
