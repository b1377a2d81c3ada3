"""Tests the Produce handler as a sequence of yielded effects and their results, without a session and without I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import build_response_header
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.protocol.records.stand_in import stand_in
from sluicegate.proxy.responses.dispatch import DeadLetters, Dispatch
from sluicegate.proxy.responses.produce_responses import ClientError, PartitionKey, most_entries
from sluicegate.proxy.session.effect import Effect, Steps
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.produce.batch_outcome import RequestOutcome
from sluicegate.proxy.session.produce.dependencies import OnInternalError
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
from sluicegate.proxy.session.produce.handler import ProduceHandler
from sluicegate.proxy.session.produce.quarantining import ProvenPartitions
from sluicegate.proxy.session.produce.response_handler import ForwardedRequest, ProduceResponseHandler
from sluicegate.proxy.session.quotas.metering import QuotaDecision
from sluicegate.proxy.session.quotas.shares import TopicShares
from sluicegate.proxy.session.request_runner import run_at_once
from sluicegate.validation.outcome import Outcome
from sluicegate.validation.previous_times import PreviousTimeInFlight
from tests.bounds.frames import good_batch, sized_produce_request
from tests.proxy.session.playbook import NOW, Playbook
from tests.proxy.session.produce.effect_playbook import HandledRequest, play_effects

GOOD = good_batch(NOW)
DAMAGED = GOOD[:-1] + b"\xff"
ID = b"sixteen bytes id"
_HEADER_BYTES = 8 + 2 + len(b"hostile") + 1


class ScriptedMeter:
    """The charged sizes, and the decisions that the test has set."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.shares: TopicShares = ()
        self.decision = QuotaDecision.PROCEED
        self.taken_of_topics: list[TopicShares] = []

    def with_throttle(self, in_flight: InFlightRequest, _version: int) -> InFlightRequest:
        return in_flight

    def shares_of_topics(self, *_: object) -> TopicShares:
        return self.shares

    def must_wait_for_topics(self, _shares: TopicShares, _size: int) -> QuotaDecision:
        return self.decision


class HandlerScript:
    """One handler, whose bookkeeping is recorded. Its dependencies are a proxy's, except for those in `changed`."""

    def __init__(self, has_topic_quotas: bool = False, **changed: Any) -> None:
        quota = (
            {"SLUICEGATE__QUOTAS": "[{name: all, topic: '*', bytes_per_second: 1000000}]"} if has_topic_quotas else {}
        )
        play = Playbook(**quota)
        self.outcomes: list[Outcome] = []
        self.not_stored: list[str] = []
        self.reported: list[BaseException] = []
        self.shared = replace(play.dependencies.requests.produce, validations=self, **changed)
        self.meter, identity = ScriptedMeter(), play.session.identity
        proven = ProvenPartitions(self.shared.names, self.shared.now_ms)
        self.handler = ProduceHandler(self.shared, identity, self.meter, proven)
        self.responses = ProduceResponseHandler(self.shared.rewriter, self.shared.clock, identity, proven)
        self.forwarded: list[ForwardedRequest] = []

    def steps(self, sized: bytes, version: int = 9, of_client: QuotaDecision = QuotaDecision.PROCEED) -> Steps[None]:
        return self.handler.handle(bytearray(sized[4:]), version, 7, _HEADER_BYTES, of_client)

    def handle(
        self, sized: bytes, version: int = 9, of_client: QuotaDecision = QuotaDecision.PROCEED
    ) -> HandledRequest:
        return HandledRequest(self.steps(sized, version, of_client), self.perform)

    def perform(self, effect: Effect[Any]) -> object:
        """Record bookkeeping; other effects are the test's."""
        match effect:
            case ChargeRequest(size):
                self.meter.taken.append(size)
            case ChargeTopics(shares):
                self.meter.taken_of_topics.append(shares)
            case ExpectResponse():
                return self.expect(effect)
            case Settle(outcome):
                self.settled(outcome)
            case ReportNotStored(_, reason):
                self.not_stored.append(reason)
            case ReportUnvalidated(error):
                self.reported.append(error)
            case TeachFastPath() | TimeRequest() | ReleaseMemory() | LearnStoredTimes() | ReportBrokerErrors():
                pass
            case _:
                return NotImplemented
        return None

    def expect(self, effect: ExpectResponse) -> InFlightRequest:
        """Return a request whose response is handled as in a session."""
        request, stand_ins = effect.request, effect.dispatch.stand_in_request
        forwarded = ForwardedRequest(
            effect.batches, stand_ins, {}, request.version, request.acks, most_entries(request), self.shared.clock.now()
        )
        self.forwarded.append(forwarded)

        def respond(frame: bytearray) -> Parts:
            return run_at_once(self.responses.handle(forwarded, frame), self.perform)

        return InFlightRequest(effect.correlation_id, respond)

    def settled(self, request: RequestOutcome) -> None:
        """Record outcomes."""
        self.outcomes += (batch.outcome for batch in request.batches)

    def not_accepted(self, *_: object) -> None:
        raise AssertionError("no fast path here")

    def not_quarantined(self, *_: object) -> None:
        raise AssertionError("the handler reports it by an effect")

    def validate(self, effect: Validate, letters: Iterable[DeadLetters] = ()) -> Dispatch:
        """Return the result of the proxy's own validation."""
        dispatch = self.shared.scheduler.validate(effect.request, effect.client)
        assert dispatch is not None
        dispatch.dead_letters = tuple(letters)
        return dispatch


def has_ended(steps: HandledRequest, sent: Any = None) -> bool:
    """Return whether the handler yields no more effects."""
    try:
        steps.send(sent)
    except StopIteration:
        return True
    return False


def names_response(code: int) -> bytearray:
    """Return the broker's Produce response for partition 0 of `t`, with this code."""
    said = {"name": "t", "partition_responses": [{"index": 0, "error_code": code, "base_offset": -1}]}
    return bytearray(build_response_header(7, 1) + PRODUCE_RESPONSE.build({"responses": [said]}, 9))


def test_valid_request_is_validated_and_forwarded_unchanged() -> None:
    script, sized = HandlerScript(), sized_produce_request(9, {b"t": [(0, GOOD)]})
    steps = script.handle(sized)

    validate = next(steps)
    assert isinstance(validate, Validate)
    forward = steps.send(script.validate(validate))
    assert isinstance(forward, ForwardAsItCame)
    assert forward.frame == sized[4:]
    assert forward.in_flight is not None
    assert forward.in_flight.correlation_id == 7
    assert has_ended(steps)

    assert script.meter.taken == [len(sized) - 4]
    assert script.outcomes == []


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ErrorCode.NONE, Outcome.ACCEPTED),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, Outcome.ACCEPTED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Outcome.RESEND),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, Outcome.REJECTED),
    ],
)
def test_broker_response_determines_the_outcome_of_a_valid_batch(code: ErrorCode, outcome: Outcome) -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)]}))
    forward: Any = steps.send(script.validate(next(steps)))
    assert has_ended(steps)

    response = names_response(code)
    assert forward.in_flight.finish(bytearray(response)) is not None

    assert script.outcomes == [outcome]


def test_a_request_with_acks_0_awaits_no_response() -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)]}, acks=0))

    forward: Any = steps.send(script.validate(next(steps)))

    assert forward.in_flight is None
    assert has_ended(steps)
    assert script.outcomes == [Outcome.UNKNOWN]


def test_topic_ids_are_resolved_before_validation() -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(13, {ID: [(0, GOOD)]}), 13)

    assert next(steps) == ResolveNames([ID])
    script.shared.names.learn([(ID, "t")])
    validate = steps.send(None)
    assert isinstance(validate, Validate)
    assert isinstance(steps.send(script.validate(validate)), ForwardAsItCame)

    again = script.handle(sized_produce_request(13, {ID: [(0, GOOD)]}), 13)
    assert isinstance(next(again), Validate)


def test_validation_waits_for_the_settings_of_its_topics() -> None:
    script = HandlerScript(settings=object())
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)], b"u": [(0, GOOD)]}))

    assert next(steps) == AwaitSettings(("t", "u"))
    assert isinstance(steps.send(None), Validate)


def test_a_request_waits_for_its_quota_turn_before_it_is_metered() -> None:
    script, sized = HandlerScript(), sized_produce_request(9, {b"t": [(0, GOOD)]})
    steps = script.handle(sized, of_client=QuotaDecision.WAIT)

    assert next(steps) == AwaitQuotaTurn()
    assert script.meter.taken == []
    assert isinstance(steps.send(None), Validate)
    assert script.meter.taken == [len(sized) - 4]


def test_client_rejected_by_its_quota_is_disconnected_after_earlier_responses() -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)]}), of_client=QuotaDecision.REJECT)

    assert isinstance(next(steps), CloseInTurn)
    assert has_ended(steps)
    assert script.meter.taken == []


@pytest.mark.parametrize("decision", QuotaDecision)
def test_a_topic_quota_wait_precedes_validation(decision: QuotaDecision) -> None:
    script, sized = HandlerScript(has_topic_quotas=True), sized_produce_request(9, {b"t": [(0, GOOD)]})
    shares: Any = (("a share", 100),)
    script.meter.shares, script.meter.decision = shares, decision
    steps = script.handle(sized)

    effect = next(steps)
    if decision is QuotaDecision.REJECT:
        assert isinstance(effect, CloseInTurn)
        assert has_ended(steps)
        assert script.meter.taken_of_topics == []
        return
    if decision is QuotaDecision.WAIT:
        assert effect == AwaitTopicQuotas(shares, len(sized) - 4)
        assert script.meter.taken_of_topics == []
        effect = steps.send(None)
    assert isinstance(effect, Validate)
    assert script.meter.taken_of_topics == [shares]


def test_fix_waits_for_earlier_responses_and_is_validated_again() -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)]}))

    assert isinstance(next(steps), Validate)
    assert steps.throw(PreviousTimeInFlight()) == AwaitEarlierResponses()
    validate = steps.send(None)
    assert isinstance(validate, Validate)
    assert isinstance(steps.send(script.validate(validate)), ForwardAsItCame)


def test_internal_error_in_validation_is_raised_to_the_caller() -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)]}))
    next(steps)

    with pytest.raises(ValueError, match="a bug"):
        steps.throw(ValueError("a bug"))

    assert script.reported == []


def test_an_internal_error_forwards_the_request_if_configured() -> None:
    script, error = HandlerScript(on_internal_error=OnInternalError.FORWARD), ValueError("a bug")
    sized = sized_produce_request(9, {b"t": [(0, GOOD)]})
    steps = script.handle(sized)
    next(steps)

    forward = steps.throw(error)

    assert isinstance(forward, ForwardAsItCame)
    assert forward.frame == sized[4:]
    assert has_ended(steps)
    assert script.reported == [error]
    assert script.outcomes == []


@pytest.mark.parametrize("word", OnInternalError)
def test_a_malformed_request_is_never_forwarded(word: OnInternalError) -> None:
    script = HandlerScript(on_internal_error=word)
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)]}))
    next(steps)

    with pytest.raises(MalformedMessage):
        steps.throw(MalformedMessage("no batch"))


def test_malformed_request_raises_before_any_effect() -> None:
    with pytest.raises(MalformedMessage):
        next(HandlerScript().handle(sized_produce_request(9, {b"t": [(0, GOOD)]})[:40]))


def test_abandoned_validation_ends_the_request_without_an_outcome() -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)]}))
    next(steps)

    assert has_ended(steps, None)
    assert script.outcomes == []


def forwarded_request(script: HandlerScript) -> ForwardedRequest:
    """Return a good request that the broker has."""
    steps = script.handle(sized_produce_request(9, {b"t": [(0, GOOD)]}))
    steps.send(script.validate(next(steps)))
    (forwarded,) = script.forwarded
    return forwarded


def test_response_releases_memory_then_reports_outcomes_then_stores_timestamps() -> None:
    script = HandlerScript()
    forwarded = forwarded_request(script)

    effects = play_effects(
        script.responses.handle(forwarded, names_response(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        [
            (ReportBrokerErrors(frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER})), None),
            (ReleaseMemory(0), None),
            (Settle, None),
            (LearnStoredTimes({}, {PartitionKey("t", 0): ClientError(ErrorCode.NOT_LEADER_OR_FOLLOWER, False)}), None),
        ],
    )

    assert [batch.outcome for effect in effects if isinstance(effect, Settle) for batch in effect.outcome.batches] == [
        Outcome.RESEND
    ]


def test_malformed_response_gives_batches_the_outcome_unknown() -> None:
    script = HandlerScript()
    steps = script.responses.handle(forwarded_request(script), names_response(ErrorCode.NONE)[:12])

    assert next(steps) == ReleaseMemory(0)
    settle = next(steps)
    assert isinstance(settle, Settle)
    assert [batch.outcome for batch in settle.outcome.batches] == [Outcome.UNKNOWN]
    with pytest.raises(MalformedMessage):
        next(steps)


def test_session_end_without_response_gives_batches_the_outcome_unknown() -> None:
    script = HandlerScript()

    _, settle = play_effects(
        script.responses.end(forwarded_request(script)), [(ReleaseMemory(0), None), (Settle, None)]
    )

    assert isinstance(settle, Settle)
    assert [batch.outcome for batch in settle.outcome.batches] == [Outcome.UNKNOWN]


def test_rejected_batch_is_replaced_by_a_stand_in_and_its_error_is_merged() -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(9, {b"t": [(0, DAMAGED)]}))

    forward: Any = steps.send(script.validate(next(steps)))
    assert isinstance(forward, Forward)
    assert stand_in(memoryview(DAMAGED)) in b"".join(forward.parts)
    assert has_ended(steps)

    assert _codes(forward, names_response(ErrorCode.CORRUPT_MESSAGE)) == [ErrorCode.CORRUPT_MESSAGE]
    assert _codes(forward, names_response(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED
    ]
    assert script.shared.names.is_known("t")


def test_a_recent_broker_error_is_reused_without_forwarding() -> None:
    script, sized = HandlerScript(), sized_produce_request(9, {b"t": [(0, DAMAGED)]})
    steps = script.handle(sized)
    forward: Any = steps.send(script.validate(next(steps)))
    assert has_ended(steps)
    _codes(forward, names_response(ErrorCode.CORRUPT_MESSAGE))

    again = script.handle(sized)
    respond = again.send(script.validate(next(again)))

    assert isinstance(respond, Respond)
    assert respond.in_flight.response is not None
    assert has_ended(again)


def test_a_rejection_with_acks_0_closes_the_connection() -> None:
    script = HandlerScript()
    steps = script.handle(sized_produce_request(9, {b"t": [(0, DAMAGED)]}, acks=0))

    forward: Any = steps.send(script.validate(next(steps)))
    assert isinstance(forward, Forward)
    assert forward.in_flight == ()
    assert isinstance(steps.send(None), CloseUnanswered)
    assert has_ended(steps)
    assert script.outcomes == [Outcome.REJECTED]


_LETTERS = DeadLetters((0, 0), "dead", "t", 0)


def _quarantined(script: HandlerScript, letters: DeadLetters = _LETTERS) -> tuple[HandledRequest, Any]:
    steps = script.handle(sized_produce_request(9, {b"t": [(0, DAMAGED)]}))
    return steps, steps.send(script.validate(next(steps), [letters]))


def test_bad_records_are_stored_after_the_broker_response_and_before_rejection() -> None:
    script = HandlerScript()
    steps, ask = _quarantined(script)

    assert isinstance(ask, AskBroker)
    assert ask.correlation_id == 7
    assert steps.send(ask.read(names_response(ErrorCode.CORRUPT_MESSAGE))) == StoreBadRecords([_LETTERS])
    assert script.outcomes == []
    effect = steps.send({})
    assert isinstance(effect, Respond)  # the broker has just responded
    assert has_ended(steps)
    assert script.outcomes == [Outcome.REJECTED]
    assert script.not_stored == []


def test_bad_records_are_not_stored_if_the_broker_rejects_the_partition() -> None:
    script = HandlerScript()
    steps, ask = _quarantined(script)

    effect = steps.send(ask.read(names_response(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))

    assert isinstance(effect, Forward)
    assert _codes(effect, names_response(ErrorCode.CORRUPT_MESSAGE)) == [ErrorCode.REQUEST_TIMED_OUT]


@pytest.mark.parametrize("lacking", [None, "too large"])
def test_client_must_resend_batch_whose_bad_records_are_not_stored(lacking: str | None) -> None:
    script = HandlerScript()
    steps, ask = _quarantined(script, replace(_LETTERS, lacking=lacking))

    effect = steps.send(ask.read(names_response(ErrorCode.CORRUPT_MESSAGE)))
    if lacking is None:
        assert isinstance(effect, StoreBadRecords)
        effect = steps.send({(0, 0): "the disk is full"})

    assert isinstance(effect, Respond)
    assert has_ended(steps)
    assert script.not_stored == [lacking or "the disk is full"]
    assert script.outcomes == [Outcome.RESEND]


def _codes(forward: Forward, response: bytearray) -> Sequence[int]:
    """Return the codes that the client gets for this response of the broker."""
    (*_, in_flight) = forward.in_flight
    assert in_flight.finish is not None
    parts = in_flight.finish(response)
    assert parts is not None
    answer = PRODUCE_RESPONSE.parse(b"".join(parts)[5:], 9)
    return [entry["error_code"] for topic in answer["responses"] for entry in topic["partition_responses"]]
