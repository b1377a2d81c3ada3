"""Validations that observe count everything, store little, and take a few microseconds on the event loop."""

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.reporting.events.violation_event import Event, EventNumbering, ViolationEvent, event_of
from sluicegate.proxy.reporting.events.violation_events import ViolationEvents
from sluicegate.proxy.reporting.logs import validation_lines
from sluicegate.proxy.reporting.logs.aggregation import LINES_AT_ONCE
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.reporting.metrics.validation_counts import ValidationCounts
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.responses.topic_names import TopicNames
from sluicegate.proxy.server.observer import BatchSink, Observer, RequestSink
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import ValidatedRequest, ValidationBasis
from sluicegate.validation.verdict import BadRecord, Finding, Reason
from tests.proxy.session.outcomes import settled_outcome
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
HELD_TO = ValidationBasis(TopicPolicy(), NOW)


class RecordingSink:
    """A sink that stores its events."""

    def __init__(self) -> None:
        self.violations: list[ViolationEvent] = []

    def write(self, event: Event) -> None:
        assert isinstance(event, ViolationEvent)
        self.violations.append(event)

    def close(self) -> None:
        pass


class RecordingObserver:
    """An observer with access to its counters, events and lines. Topics named `known-…` exist."""

    def __init__(
        self, max_topics: int = 500, reports: tuple[tuple[RequestSink, ...], tuple[BatchSink, ...]] = ((), ())
    ) -> None:
        self.counters, self.kept, self.names = Counters(), RecordingSink(), TopicNames()
        labels = TopicLabels(self.counters, self._is_known, [])
        counts = ValidationCounts(self.counters, labels, LiveView(self.counters, None, 0), max_topics=max_topics)
        events = ViolationEvents(self.kept, 2, EventNumbering("proxy:9092"))
        self.observer = Observer(
            labels,
            counts,
            events,
            *reports,
            WriteHealth(),
            later=lambda step: step(),
            log=SessionLog(),
            internal_errors=self.counters.internal_errors,
        )

    def _is_known(self, name: str) -> bool:
        return name.startswith("known-") or self.names.is_known(name)

    def reject(self, client_id: str, topics: dict[str, int], rejected: Finding) -> None:
        """Report a request with this many partitions of each topic, all rejected."""
        request = request_of(topics)
        places = [(t, p) for t, topic in enumerate(request.topics) for p in range(len(topic.partitions))]
        validated = ValidatedRequest(rejected=dict.fromkeys(places, rejected))
        validated.basis.update(dict.fromkeys(places, HELD_TO))
        identity = ClientIdentity("10.0.0.1:5", client_text(client_id))
        self.observer.settled(settled_outcome(identity, request, validated))


def request_of(topics: dict[str, int]) -> ProduceRequest:
    body = produce_body(9, [topic_data(name, *((p, b"") for p in range(count))) for name, count in topics.items()])
    return walk_produce_request(bytearray(body), 9, 0, 20_000)


def rejection_finding(bad: int = 3, listed: int = 3) -> Finding:
    records = tuple(BadRecord(i, 5, Reason.TIMESTAMP_TOO_OLD, "text") for i in range(listed))
    return Finding(ErrorCode.INVALID_TIMESTAMP, Reason.TIMESTAMP_TOO_OLD, "message", records, bad, records=bad)


def test_all_bad_records_are_counted_although_few_are_listed() -> None:
    seen = RecordingObserver()
    with capture_logs() as lines:
        seen.reject("billing", {"known-payments": 1}, rejection_finding(bad=149_796, listed=1000))

    assert seen.counters.batch_counts["sluicegate_rejected_records"] == {
        ("known-payments", "INVALID_TIMESTAMP"): 149_796
    }
    (kept,) = seen.kept.violations
    assert (len(kept.bad_records), event_of(kept)["bad_records"]) == (2, 149_796)
    assert (lines[0]["bad_records"], lines[0]["client_id"], lines[0]["record"]) == (149_796, "billing", 0)


def test_batch_with_two_violated_rules_counts_once_as_observed_and_once_per_rule() -> None:
    seen, request = RecordingObserver(), request_of({"known-payments": 1})
    keyed, text = (
        replace(rejection_finding(bad), reason=Reason.RULE_VIOLATED, rules=((name, bad),))
        for name, bad in (("keyed", 3), ("text", 2))
    )
    validated = ValidatedRequest()
    validated.reject((0, 0), text, ValidationBasis(TopicPolicy(mode=Mode.OBSERVE), NOW))
    validated.reject((0, 0), keyed, ValidationBasis(TopicPolicy(mode=Mode.OBSERVE), NOW))

    with capture_logs():
        seen.observer.settled(settled_outcome(ClientIdentity("10.0.0.1:5", "billing"), request, validated))

    counters = seen.counters
    assert counters.validated_batches == {"accepted": 1}
    assert counters.batch_counts["sluicegate_observed_batches"] == {("known-payments", "INVALID_TIMESTAMP"): 1}
    assert counters.batch_counts["sluicegate_observed_records"] == {("known-payments", "INVALID_TIMESTAMP"): 3}
    assert counters.rule_batches == {("keyed", "accepted"): 1, ("text", "accepted"): 1}
    assert counters.rule_records == {("keyed", "accepted"): 3, ("text", "accepted"): 2}
    assert {kind[1]: count for kind, count in counters.violations.items()} == {"keyed": 1, "text": 1}
    assert [event_of(kept)["rules"][0]["rule"] for kept in seen.kept.violations] == ["keyed", "text"]


def test_topics_beyond_the_limit_share_one_series_and_displace_no_other_topic() -> None:
    seen = RecordingObserver(max_topics=3)
    seen.reject("billing", {"known-payments": 2, "invented": 1}, rejection_finding())
    seen.reject("hostile", {f"known-{number}": 1 for number in range(9)}, rejection_finding())

    assert seen.counters.topic_batches == {
        ("known-payments", "rejected"): 2,
        ("known-0", "rejected"): 1,
        ("known-1", "rejected"): 1,
        ("other", "rejected"): 8,
    }


def test_topic_gets_a_metric_label_only_after_a_broker_confirms_it() -> None:
    seen = RecordingObserver()
    with capture_logs():
        seen.reject("c", {"invented": 2}, rejection_finding())
        seen.names.learn([(None, "invented")])
        seen.reject("c", {"invented": 1}, rejection_finding())

    assert seen.observer.counted().batch_counts["sluicegate_rejected_batches"] == {
        (OTHER, "INVALID_TIMESTAMP"): 2,
        ("invented", "INVALID_TIMESTAMP"): 1,
    }


def test_flood_of_clients_and_topics_logs_bounded_lines_and_hides_no_known_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock stands still, because the test may take minutes, in which quiet kinds would be dropped."""
    monkeypatch.setattr(validation_lines, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    seen = RecordingObserver()
    with capture_logs() as lines:
        for i in range(3000):
            seen.reject(f"client-{i}" + "x" * 20_000, {f"topic-{i}" + "y" * 20_000: 1}, rejection_finding())
        seen.reject("billing", {"known-payments": 1}, rejection_finding())
        seen.observer.sweep()

    assert len(lines) <= LINES_AT_ONCE
    assert max(len(str(line)) for line in lines) < 1500
    (honest,) = [line for line in lines if line["topic"] == "known-payments"]
    assert (honest["client_id"], honest["client_address"], honest["batches"]) == ("many different", "many different", 1)


def test_reporting_ten_thousand_rejections_takes_bounded_cpu_time() -> None:
    """The limit is a multiple of the cost of counting and storing alone, because machines differ."""
    seen = RecordingObserver()
    request = request_of({"known-payments": 10_000})
    places = [(0, p) for p in range(10_000)]
    validated = ValidatedRequest(rejected=dict.fromkeys(places, rejection_finding(bad=1000, listed=1000)))
    validated.basis.update(dict.fromkeys(places, HELD_TO))
    outcome = settled_outcome(ClientIdentity("10.0.0.1:5", "c"), request, validated)

    with capture_logs():
        took = min(cpu_seconds_of(seen.observer.settled, outcome) for _ in range(3))
    made = min(cpu_seconds_of(lambda: [event_of(kept) for kept in seen.kept.violations[:10_000]]) for _ in range(3))

    assert took < 1.3 * made, "creating events on the loop would take 1.7 times as long"
    assert took < 1


def cpu_seconds_of(function: Any, *arguments: Any) -> float:
    """Return the CPU time of a call (s), on which other load has little effect."""
    begin = time.thread_time()
    function(*arguments)
    return time.thread_time() - begin


class FailingSink:
    """A report with a bug."""

    def request_settled(self, _request: object) -> None:
        raise ValueError("a bug")

    def batch_settled(self, *_: object) -> None:
        raise ValueError("a bug")


@pytest.mark.internal_error
@pytest.mark.parametrize("of_batches", [False, True])
def test_an_error_in_a_report_affects_no_other_report_and_is_logged(of_batches: bool) -> None:
    seen = RecordingObserver(reports=((), (FailingSink(),)) if of_batches else ((FailingSink(),), ()))

    with capture_logs() as lines:
        seen.reject("billing", {"known-payments": 1}, rejection_finding())

    assert [line["event"] for line in lines].count("internal error, validation not reported") == 1
    assert seen.counters.internal_errors == {"unreported": 1}
    assert seen.counters.validated_batches == {"rejected": 1}
    assert len(seen.kept.violations) == 1
