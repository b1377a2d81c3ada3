"""However many clients, topics and rules there are, violations have a bounded number of series."""

from threading import Lock

from sluicegate.protocol.errors import ErrorCode
from sluicegate.proxy.reporting.events.violation_event import EventOrigin, event_of, violation_event
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.reporting.metrics.violation_labels import (
    MAX_CLIENTS,
    MAX_KINDS,
    NO_CLIENT_ID,
    RuleLabels,
    ViolationLabels,
    rules_of,
)
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, ReportedFinding
from sluicegate.validation.outcome import Outcome
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import ValidationBasis
from sluicegate.validation.verdict import BadRecord, Finding, Reason


def test_clients_beyond_limit_are_counted_as_other() -> None:
    counters = Counters()
    labels = ViolationLabels(counters, Lock(), max_clients=2)

    for client_id in ("a", "b", "c", "d", None):
        labels.violated("orders", ("timestamp_in_future",), "reject", "rejected", client_id, "10.0.0.1")

    by_client = {client: count for (*_, client), count in counters.violations.items()}
    assert by_client == {"a": 1, "b": 1, OTHER: 3}


def test_a_client_without_an_id_has_its_own_label() -> None:
    counters = Counters()
    ViolationLabels(counters, Lock()).violated("orders", ("null_key",), "observe", "accepted", None, "10.0.0.1")

    assert counters.violations == {("orders", "null_key", "observe", "accepted", NO_CLIENT_ID): 1}


def test_violations_beyond_limit_are_counted_without_topic_and_client() -> None:
    counters = Counters()
    labels = ViolationLabels(counters, Lock(), max_kinds=10)

    for i in range(1000):
        labels.violated(f"topic-{i % 40}", ("crc",), "reject", "rejected", f"client-{i % 50}", "10.0.0.1")

    assert len(counters.violations) == 11
    assert counters.violations.total() == 1000
    assert counters.violations[OTHER, "crc", "reject", "rejected", OTHER] > 900


def test_flood_of_topics_and_client_ids_does_not_displace_series_of_other_clients() -> None:
    counters = Counters()
    labels = ViolationLabels(counters, Lock())
    totals = []
    for i in range(20_000):
        labels.violated(f"topic-{i}", ("crc",), "reject", "rejected", f"invented-{i}", "10.0.0.1")
        if i >= 5000 and i % 100 == 0:
            labels.violated("payments", ("timestamp_in_future",), "reject", "rejected", "shop", "10.0.0.2")
            totals.append(counters.violations["payments", "timestamp_in_future", "reject", "rejected", "shop"])

    assert totals == list(range(1, 151))
    assert counters.violations.total() == 20_150
    assert len(counters.violations) <= MAX_KINDS + 2
    assert len({client for *_, client in counters.violations}) <= MAX_CLIENTS + 1


def test_violation_label_is_rule_name_or_reason_code() -> None:
    rule = Finding(ErrorCode.INVALID_RECORD, Reason.RULE_VIOLATED, rules=(("has-key", 2), ("is-json", 1)))
    time = Finding(ErrorCode.INVALID_TIMESTAMP, Reason.TIMESTAMP_IN_FUTURE)

    assert rules_of(rule) == ("has-key", "is-json")
    assert rules_of(time) == ("timestamp_in_future",)


TEXT = "rule keyed: the key is null; send a key; rule tenant: header tenant is missing"
BAD = BadRecord(3, 5, Reason.RULE_VIOLATED, TEXT, rules=("keyed", "tenant"))
BROKEN = Finding(ErrorCode.INVALID_RECORD, Reason.RULE_VIOLATED, "m", (BAD,), 1, 9, rules=(("keyed", 1), ("tenant", 1)))


def test_every_violated_rule_of_a_batch_is_counted() -> None:
    counters = Counters()
    labels = RuleLabels(counters)
    for mode in ("rejected", "rejected", "accepted"):
        labels.count(mode, BROKEN.rules)

    assert counters.rule_batches == {
        ("keyed", "rejected"): 2,
        ("tenant", "rejected"): 2,
        ("keyed", "accepted"): 1,
        ("tenant", "accepted"): 1,
    }
    assert counters.rule_records == counters.rule_batches


def test_rules_beyond_limit_are_counted_as_other() -> None:
    counters = Counters()
    labels = RuleLabels(counters, max_rules=2)
    for number in range(10):
        labels.count("rejected", ((f"r{number}", 0),))

    assert counters.rule_batches == {("r0", "rejected"): 1, ("r1", "rejected"): 1, ("other", "rejected"): 8}


def test_events_have_the_violated_rule_and_its_diagnosis() -> None:
    who = ClientDetails("a:1", "app", None, None, None)
    basis = ValidationBasis(TopicPolicy(), 1_800_000_000_000)
    batch = BatchOutcome("t", None, 0, 9, 500, Outcome.REJECTED, BROKEN.code, basis=basis)
    kept = violation_event(who, batch, ReportedFinding(Mode.REJECT, BROKEN), EventOrigin("proxy:9092", "a-1"), 10)

    event = event_of(kept)

    assert event["rule"] == "keyed"
    assert event["rules"] == [{"rule": "keyed", "bad_records": 1}, {"rule": "tenant", "bad_records": 1}]
    sample = {"index": 3, "timestamp": 5, "reason": "rule_violated", "rule": "keyed", "diagnosis": TEXT}
    assert event["samples"] == [sample]
    assert kept.size > len(TEXT) * 4
