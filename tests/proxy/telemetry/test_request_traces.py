"""The right requests are traced, and their spans have the right attributes."""

from collections.abc import Callable

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import StatusCode

from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.telemetry.request_traces import RequestSummary, RequestTraces
from sluicegate.proxy.telemetry.span_push import span_of
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import Accepted
from tests.proxy.server.test_observer import HELD_TO, NOW, rejection_finding, request_of
from tests.proxy.session.outcomes import settled_outcome

RESOURCE = Resource({})
CLIENT = ClientIdentity("[2001:db8::1]:5", "billing", "librdkafka", "2.6", "User:alice")


class TracedRequests:
    """Requests of a client, traced at most `most` a second; `at` is the time (s)."""

    def __init__(self, most: int = 10) -> None:
        self.kept: list[RequestSummary] = []
        self.now = 0.0
        self.traces = RequestTraces(most, self.kept.append, lambda: self.now)

    def settle_request(
        self, validated: ValidatedRequest, at: float = 100, upstream_seconds: float | None = None
    ) -> None:
        self.now = at
        request = request_of({"payments": 1})
        self.traces.request_settled(
            settled_outcome(
                CLIENT, request, validated, None, NOW, proxy_seconds=0.25, upstream_seconds=upstream_seconds
            )
        )


def valid_request() -> ValidatedRequest:
    return ValidatedRequest(accepted={(0, 0): Accepted(3, 0)})


def rejected_request(places: int = 1) -> ValidatedRequest:
    validated = ValidatedRequest(rejected={(0, p): rejection_finding() for p in range(places)})
    validated.basis.update(dict.fromkeys(validated.rejected, HELD_TO))
    return validated


def test_span_of_a_rejected_request_has_client_topic_verdict_and_diagnosis() -> None:
    traced = TracedRequests()

    traced.settle_request(rejected_request())

    span = span_of(traced.kept[0], RESOURCE)
    values = span.attributes
    assert (span.name, span.status.description) == ("produce payments", "INVALID_TIMESTAMP: timestamp_too_old")
    assert (span.end_time, span.end_time - span.start_time) == (NOW * 10**6, 250_000_000)
    assert {
        "messaging.system": "kafka",
        "messaging.client.id": "billing",
        "messaging.destination.name": "payments",
        "messaging.batch.message_count": 3,
        "network.peer.address": "2001:db8::1",
        "network.peer.port": 5,
        "error.type": "INVALID_TIMESTAMP",
        "sluicegate.outcome": "rejected",
        "sluicegate.client.software": "librdkafka 2.6",
        "sluicegate.client.principal": "User:alice",
        "sluicegate.problem.record": 0,
    }.items() <= values.items()


def _quarantined(validated: ValidatedRequest) -> None:
    validated.to_quarantine = {(0, 0): (validated.rejected[0, 0],)}
    validated.quarantined = frozenset({(0, 0)})


def _not_kept(validated: ValidatedRequest) -> None:
    validated.to_quarantine = {(0, 0): (validated.rejected[0, 0],)}
    validated.to_retry = {(0, 0): "unknown topic"}


def _observed(validated: ValidatedRequest) -> None:
    validated.observed = {(0, 0): (validated.rejected.pop((0, 0)),)}


@pytest.mark.parametrize(
    ("become", "outcome", "is_error"),
    [(_quarantined, "rejected", True), (_not_kept, "resend", True), (_observed, "accepted", False)],
)
def test_span_has_the_outcome_of_its_request(
    become: Callable[[ValidatedRequest], None], outcome: str, is_error: bool
) -> None:
    traced, validated = TracedRequests(), rejected_request()
    become(validated)

    traced.settle_request(validated)

    span = span_of(traced.kept[0], RESOURCE)
    assert span.attributes["sluicegate.outcome"] == outcome
    assert span.attributes[f"sluicegate.batches.{outcome}"] == 1
    assert (span.status.status_code is StatusCode.ERROR) is is_error


def test_valid_and_violating_requests_are_sampled_separately_and_skipped_ones_counted() -> None:
    traced = TracedRequests(most=2)

    for at in (100, 100.1, 100.2, 100.3):
        traced.settle_request(valid_request(), at)
        traced.settle_request(rejected_request(), at)
    traced.settle_request(rejected_request(), 101.5)

    assert [one.outcome for one in traced.kept] == ["accepted", "rejected"] * 2 + ["rejected"]
    assert [one.untraced for one in traced.kept] == [0, 0, 0, 0, 2]


def test_a_span_ends_with_the_brokers_response() -> None:
    traced = TracedRequests()

    traced.settle_request(valid_request(), upstream_seconds=0.5)

    span = span_of(traced.kept[0], RESOURCE)
    assert span.end_time - span.start_time == 750_000_000


def test_client_and_topic_names_in_spans_are_truncated_and_escaped() -> None:
    traced = TracedRequests()
    request = request_of({f"topic-{i}" + "y" * 1000: 1 for i in range(300)})
    validated = ValidatedRequest(
        accepted={(t, 0): Accepted(3, 0) for t in range(1, 300)}, rejected=rejected_request().rejected
    )
    validated.basis[0, 0] = HELD_TO

    traced.traces.request_settled(
        settled_outcome(ClientIdentity("10.0.0.1:5", client_text("c\x1b" + "x" * 20_000)), request, validated)
    )

    span = span_of(traced.kept[0], RESOURCE)
    values = span.attributes
    assert values["messaging.client.id"].startswith("c\\x1bx")
    assert (len(values["sluicegate.topics"]), values["sluicegate.topics.count"]) == (10, 300)
    assert encode_spans([span]).ByteSize() < 8000
