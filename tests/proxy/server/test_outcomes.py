"""Metrics, events, log lines, the live view and spans report the same outcome for a batch."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from opentelemetry.sdk.resources import Resource
from structlog.testing import capture_logs

from sluicegate.protocol.errors import ERROR_NAMES, ErrorCode
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.reporting.events.violation_event import EventNumbering, event_of
from sluicegate.proxy.reporting.events.violation_events import ViolationEvents
from sluicegate.proxy.reporting.events.violation_writer import SeveralSinks
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.reporting.metrics.validation_counts import ValidationCounts
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.responses.produce_responses import ClientError, PartitionKey
from sluicegate.proxy.server.observer import Observer
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.produce.batch_outcome import RequestOutcome
from sluicegate.proxy.telemetry.request_traces import RequestSummary, RequestTraces
from sluicegate.proxy.telemetry.span_push import span_of
from sluicegate.validation.outcome import Outcome
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.validated_request import (
    FixedBatch,
    MarkedBatch,
    MaskedBatch,
    ValidatedRequest,
    ValidationBasis,
)
from sluicegate.validation.verdict import Accepted
from tests.proxy.server.test_observer import NOW, RecordingSink, rejection_finding, request_of
from tests.proxy.session.outcomes import settled_outcome

PLACE = (0, 0)
SPOT = PartitionKey("known-t", 0)
BASIS = ValidationBasis(TopicPolicy(dead_letters="dead"), NOW)
FOUND = rejection_finding()
OURS = ErrorCode.INVALID_TIMESTAMP


class RecordedReports:
    """All reports of one proxy."""

    def __init__(self) -> None:
        self.counters, self.kept, self.spans = Counters(), RecordingSink(), list[RequestSummary]()
        self.view = LiveView(self.counters, None, NOW)
        labels = TopicLabels(self.counters, lambda name: name.startswith("known-"), [])
        self.observer = Observer(
            labels,
            ValidationCounts(self.counters, labels, self.view),
            ViolationEvents(SeveralSinks([self.kept, self.view]), 10, EventNumbering("proxy:9092")),
            (self.view, RequestTraces(10, self.spans.append, lambda: 0.0)),
            (self.view,),
            WriteHealth(),
            lambda step: step(),
            SessionLog(),
            self.counters.internal_errors,
        )

    def report_request(self, request: RequestOutcome) -> list[dict[str, object]]:
        """Report a request, and return its log lines."""
        with capture_logs() as lines:
            self.observer.settled(request)
            self.observer.close()
        return lines


def _reject(validated: ValidatedRequest) -> None:
    validated.rejected[PLACE] = FOUND


def _quarantine(validated: ValidatedRequest) -> None:
    validated.rejected[PLACE] = FOUND
    validated.to_quarantine = {PLACE: (FOUND,)}
    validated.quarantined = frozenset({PLACE})


def _observe(validated: ValidatedRequest) -> None:
    validated.observed = {PLACE: (FOUND,)}


def _copy(validated: ValidatedRequest) -> None:
    validated.observed = {PLACE: (FOUND,)}
    validated.to_quarantine = {PLACE: (FOUND,)}
    validated.quarantined = frozenset({PLACE})


def _fix(validated: ValidatedRequest) -> None:
    validated.accepted[PLACE] = Accepted(3, 0)
    validated.fixed = {PLACE: FixedBatch(b"", FOUND)}


def _mark(validated: ValidatedRequest) -> None:
    validated.accepted[PLACE] = Accepted(3, 0)
    validated.marked = {PLACE: MarkedBatch(b"", (FOUND,))}


def _mask_and_fix(validated: ValidatedRequest) -> None:
    _fix(validated)
    validated.masked = {PLACE: MaskedBatch(b"", 1, (("mail", 1),))}


Become = Callable[[ValidatedRequest], None]
DISPOSITIONS: dict[str, tuple[Become, str, list[str], str | None]] = {
    "reject": (_reject, "reject", [], None),
    "quarantine": (_quarantine, "quarantine", [], "quarantined"),
    "observe": (_observe, "observe", [], None),
    "copy": (_copy, "copy", [], "copied"),
    "fix": (_fix, "fix", ["fixed"], None),
    "mark": (_mark, "mark", ["marked"], None),
    "mask and fix": (_mask_and_fix, "fix", ["masked", "fixed"], None),
}
"""How a batch is handled, the corresponding mode, the changes, and the copies."""
WITHHELD = {"reject", "quarantine"}

RESPONSES: dict[str, tuple[ClientError | None, Outcome, Outcome]] = {
    "the usual": (ClientError(ErrorCode.NONE, False), Outcome.REJECTED, Outcome.ACCEPTED),
    "not the leader": (ClientError(ErrorCode.NOT_LEADER_OR_FOLLOWER, False), Outcome.RESEND, Outcome.RESEND),
    "no permission": (ClientError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, False), Outcome.REJECTED, Outcome.REJECTED),
    "none": (None, Outcome.REJECTED, Outcome.UNKNOWN),
}
"""The broker's response, the outcome of a batch that was not forwarded, and the outcome of a forwarded batch."""


def _story(disposition: str, response: str) -> tuple[RequestOutcome, Outcome, int | None]:
    validated = ValidatedRequest()
    DISPOSITIONS[disposition][0](validated)
    validated.basis[PLACE] = BASIS
    error, withheld, forwarded = RESPONSES[response]
    if response == "the usual" and disposition in WITHHELD:
        error = ClientError(OURS, True)
    errors = {} if error is None else {SPOT: error}
    request = settled_outcome(
        ClientIdentity("10.0.0.1:5", "app"), request_of({SPOT.topic: 1}), validated, errors=errors
    )
    return request, withheld if disposition in WITHHELD else forwarded, None if error is None else error.code


@pytest.mark.parametrize(("disposition", "response"), list(product(DISPOSITIONS, RESPONSES)))
def test_all_reports_show_the_same_outcome_and_the_error_sent_to_the_client(disposition: str, response: str) -> None:
    reports = RecordedReports()
    request, outcome, code = _story(disposition, response)
    _, mode, changes, copies = DISPOSITIONS[disposition]

    lines = reports.report_request(request)

    counters = reports.counters
    assert counters.internal_errors == {}
    assert counters.validated_batches == {outcome: 1}
    assert counters.client_batches == {("app", outcome): 1}
    assert counters.topic_batches == {("known-t", outcome): 1}
    assert counters.violations == {("known-t", "timestamp_too_old", mode, outcome, "app"): 1}
    event = event_of(reports.kept.violations[0])
    assert (event["outcome"], event["mode"], event["changes"], event["copies"]) == (outcome, mode, changes, copies)
    assert event["client_error"] == (None if code is None else ERROR_NAMES[code])
    (line,) = lines
    assert line["outcome"] == outcome
    got = OURS if code is None or outcome not in (Outcome.REJECTED, Outcome.RESEND) else code
    assert line["error"] == ERROR_NAMES[got]
    (group,) = reports.view.violation_groups.state(10)
    assert (group["outcome"], group["mode"], group["changes"], group["copies"]) == (outcome, mode, changes, copies)
    span = span_of(reports.spans[0], Resource({}))
    assert span.attributes["sluicegate.outcome"] == outcome
    assert span.attributes[f"sluicegate.batches.{outcome}"] == 1
    is_rejected = counters.batch_counts["sluicegate_rejected_batches"]
    error = "none" if code is None else ERROR_NAMES[code]
    expected = disposition in WITHHELD and outcome is Outcome.REJECTED
    assert is_rejected == ({("known-t", error): 1} if expected else {})


@pytest.mark.parametrize("response", RESPONSES)
def test_valid_batch_is_reported_with_its_outcome_and_without_violations(response: str) -> None:
    reports = RecordedReports()
    error, _, outcome = RESPONSES[response]
    validated = ValidatedRequest(accepted={PLACE: Accepted(3, 0)})
    request = settled_outcome(
        ClientIdentity("10.0.0.1:5", "app"),
        request_of({SPOT.topic: 1}),
        validated,
        errors={} if error is None else {SPOT: error},
    )

    assert reports.report_request(request) == []

    assert reports.counters.validated_batches == {outcome: 1}
    assert reports.counters.accepted_records == 3
    assert (reports.kept.violations, reports.view.violation_groups.state(10)) == ([], [])
    assert reports.spans[0].outcome == outcome


@pytest.mark.parametrize("disposition", ["quarantine", "copy"])
def test_batch_is_reported_as_resend_if_its_bad_records_cannot_be_stored(disposition: str) -> None:
    reports, validated = RecordedReports(), ValidatedRequest()
    DISPOSITIONS[disposition][0](validated)
    validated.basis[PLACE] = BASIS
    validated.quarantined, validated.to_retry = frozenset(), {PLACE: "the disk is full"}

    (line,) = reports.report_request(
        settled_outcome(ClientIdentity("10.0.0.1:5", "app"), request_of({SPOT.topic: 1}), validated)
    )

    event = event_of(reports.kept.violations[0])
    assert (event["outcome"], event["copies"], event["client_error"]) == ("resend", "not_stored", "REQUEST_TIMED_OUT")
    assert event["message"] == "its bad records cannot be stored in dead-letter topic dead: the disk is full"
    assert (line["event"], line["outcome"]) == (
        "client asked to send the batch again: bad records not stored",
        "resend",
    )
    assert reports.counters.validated_batches == {"resend": 1}
    counts = reports.counters.batch_counts
    names = ("rejected", "quarantined", "observed", "copied")
    assert [counts[f"sluicegate_{name}_batches"].total() for name in names] == [0, 0, 0, 0]
    assert reports.spans[0].outcome == "resend"


def test_event_has_waiver_suspended_if_enforcement_is_suspended() -> None:
    reports, validated = RecordedReports(), ValidatedRequest()
    policy = TopicPolicy(dead_letters="dead").observing()
    validated.observed, validated.basis[PLACE] = {PLACE: (FOUND,)}, ValidationBasis(policy, NOW)

    reports.report_request(settled_outcome(ClientIdentity("10.0.0.1:5", "app"), request_of({SPOT.topic: 1}), validated))

    event = event_of(reports.kept.violations[0])
    assert (event["outcome"], event["waiver"]) == ("accepted", "suspended")


def test_event_has_waiver_over_budget_if_a_rule_exceeds_its_limit() -> None:
    reports, validated = RecordedReports(), ValidatedRequest()
    over = replace(FOUND, limit="limits.rule_cpu_seconds")
    validated.observed, validated.basis[PLACE] = {PLACE: (over,)}, BASIS

    reports.report_request(settled_outcome(ClientIdentity("10.0.0.1:5", "app"), request_of({SPOT.topic: 1}), validated))

    assert event_of(reports.kept.violations[0])["waiver"] == "over_budget"
