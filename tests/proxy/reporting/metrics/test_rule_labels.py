"""Violated rules are counted and reported in events, in a bounded number of series."""

from sluicegate.protocol.errors import ErrorCode
from sluicegate.proxy.reporting.events.violation_event import ClientDetails, event_of, violation
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.metrics.violation_labels import RuleLabels
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.produce import ValidationBasis
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import BadRecord, Reason, Rejected

TEXT = "rule keyed: the key is null; send one; rule tenant: header tenant is missing"
BAD = BadRecord(3, 5, Reason.RULE, TEXT, rules=("keyed", "tenant"))
BROKEN = Rejected(ErrorCode.INVALID_RECORD, Reason.RULE, "m", (BAD,), 1, 9, rules=(("keyed", 1), ("tenant", 1)))


def test_every_violated_rule_of_a_batch_counts() -> None:
    counters = Counters()
    labels = RuleLabels(counters)
    for mode in (Mode.REJECT, Mode.REJECT, Mode.OBSERVE):
        labels.violated(mode, BROKEN)

    assert counters.rule_batches == {
        ("keyed", "reject"): 2,
        ("tenant", "reject"): 2,
        ("keyed", "observe"): 1,
        ("tenant", "observe"): 1,
    }
    assert counters.rule_records == counters.rule_batches


def test_rules_without_a_place_count_together() -> None:
    counters = Counters()
    labels = RuleLabels(counters, max_rules=2)
    for number in range(10):
        labels.violated(
            Mode.REJECT, Rejected(ErrorCode.POLICY_VIOLATION, Reason.REQUEST_RULE, rules=((f"r{number}", 0),))
        )

    assert counters.rule_batches == {("r0", "reject"): 1, ("r1", "reject"): 1, ("other", "reject"): 8}


def test_events_name_the_rule_and_its_words() -> None:
    who = ClientDetails("a:1", "app", None, None, None)
    kept = violation(Mode.REJECT, who, "t", None, 0, BROKEN, ValidationBasis(TopicPolicy(), 1_800_000_000_000), 10)

    event = event_of(kept)

    assert event["rule"] == "keyed"
    assert event["rules"] == [{"rule": "keyed", "bad_records": 1}, {"rule": "tenant", "bad_records": 1}]
    sample = {"index": 3, "timestamp": 5, "reason": "breaks a rule", "rule": "keyed", "diagnosis": TEXT}
    assert event["samples"] == [sample]
    assert kept.size > len(TEXT) * 4
