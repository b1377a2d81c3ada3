"""A rule or a library that fails on a record rejects the record: it is no outage, and the connection stays open."""

from collections.abc import Callable

import pytest

from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Mode, NamedRule, OnOutage, Part, RuledRecord
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.verdict import Reason
from tests.framing.test_verdicts import NOW, PLACE, validated
from tests.wire.batches import Rec, batch

FAULTS = (
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "swordfish"),
    RecursionError("swordfish"),
    KeyError("swordfish"),
    ZeroDivisionError("swordfish"),
    OverflowError("swordfish"),
    AttributeError("swordfish"),
    TypeError("swordfish"),
    AssertionError("swordfish"),
)


class Failing:
    """A rule that fails in one of its methods on the records with the value `bad`."""

    needs = Part.VALUE
    is_slow = False

    def __init__(self, method: str, error: Exception) -> None:
        self._method = method
        self._error = error

    def _fails(self, method: str, record: RuledRecord) -> None:
        if method == self._method and record.value == b"bad":
            raise self._error

    def steps(self, record: RuledRecord) -> int:
        self._fails("steps", record)
        return 1

    def complaint(self, record: RuledRecord) -> str | None:
        if record.value == b"bad" and self._method == "steps":
            raise self._error
        self._fails("complaint", record)
        return "is bad" if record.value == b"bad" else None

    def explanation(self, record: RuledRecord) -> str | None:
        self._fails("explanation", record)
        return None


@pytest.mark.parametrize("method", ["steps", "complaint", "explanation"])
@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_a_fault_of_a_rule_rejects_its_record_alone(error: Exception, method: str) -> None:
    rule = NamedRule("failing", Failing(method, error), Mode.REJECT, on_outage=OnOutage.FORWARD)
    data = batch([Rec(NOW, value=b"good"), Rec(NOW, value=b"bad"), Rec(NOW, value=b"good")])

    rejected = validated(data, TopicPolicy(rules=RuleSet([rule]))).rejected[PLACE]

    assert (rejected.reason, [bad.index for bad in rejected.bad_records]) == (Reason.RULE, [1])
    assert "swordfish" not in str(rejected)
    if method != "explanation":
        assert type(error).__name__ in rejected.bad_records[0].message
        assert "test_faults.py:" in rejected.bad_records[0].message


def test_what_ends_a_validation_is_no_fault() -> None:
    """Running out of memory, and what the budget raises, must reach the code that runs the validation."""
    data = batch([Rec(NOW, value=b"bad")])

    def outcome(error: Exception) -> Callable[[], object]:
        rule = NamedRule("failing", Failing("complaint", error), Mode.REJECT)
        return lambda: validated(data, TopicPolicy(rules=RuleSet([rule])))

    for error in (MemoryError(), OSError("disk")):
        with pytest.raises(type(error)):
            outcome(error)()
