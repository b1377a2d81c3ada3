"""If a library fails with a client's schema and data, the record is rejected. This is not an outage and does not close
anything."""

from typing import Any

import pytest

from sluicegate.proxy.rules_process.messages import EvaluatorKind, Specification
from sluicegate.proxy.rules_process.stoppable import StoppableExpression
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Mode, NamedRule, OnOutage, RuledRecord, SchemaError, Side, StepBudget
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.registered_schema import (
    HasRegisteredSchema,
    RegisteredSchema,
    SubjectName,
)
from sluicegate.validation.verdict import Reason
from tests.framing.test_verdicts import NOW, PLACE, validate_batch
from tests.validation.dispositions.test_masking import OneSchema
from tests.validation.rules.records import record
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
NO_PROCESS: Any = None
FRAME = b"\0\0\0\0\x07"


class FailingSchema:
    """A schema, or an expression over a schema, whose library fails for the data `bad`."""

    is_slow = False

    def __init__(self, error: Exception, method: str = "fault") -> None:
        self._error = error
        self._method = method

    def fault(self, given: bytes | RuledRecord, _budget: StepBudget | None = None) -> str | None:
        data = given.value if isinstance(given, RuledRecord) else given
        return self._outcome("fault", data or b"")

    def description(self, data: bytes, _budget: StepBudget) -> str | None:
        return self._outcome("description", data)

    def record_name(self, data: bytes) -> str | None:
        return self._outcome("record_name", data)

    def _outcome(self, method: str, data: bytes) -> str | None:
        if method == self._method and data == b"bad":
            raise self._error
        return None


@pytest.mark.parametrize("method", ["fault", "record_name"])
@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_exception_in_a_schema_library_rejects_only_that_record(error: Exception, method: str) -> None:
    content: Any = FailingSchema(error, method)
    schemas = OneSchema(RegisteredSchema(SchemaLanguage.AVRO, content))
    subject = SubjectName.RECORD if method == "record_name" else SubjectName.ANY
    rule = HasRegisteredSchema(Side.VALUE, schemas, subject=subject)
    named = NamedRule("schema", rule, Mode.REJECT, on_outage=OnOutage.FORWARD)
    bad = [FRAME + b"good", FRAME + b"bad", FRAME + b"good"]
    data = batch([Rec(NOW, value=value) for value in bad])

    rejected = validate_batch(data, TopicPolicy(rules=RuleSet([named]))).rejected[PLACE]

    assert rejected.reason is Reason.RULE_VIOLATED
    (text,) = [each.message for each in rejected.bad_records if each.index == 1]
    assert type(error).__name__ in text and "test_faults.py:" in text
    assert "schema 7 of registry main" in text and "swordfish" not in text


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_exception_in_an_expression_causes_no_outage(error: Exception) -> None:
    expression: Any = FailingSchema(error)
    stoppable = StoppableExpression(Specification(EvaluatorKind.AVRO_EXPRESSION), expression, NO_PROCESS)

    assert stoppable.fault(record(b"good")) is None
    with pytest.raises(SchemaError, match=r"\w+Error at test_faults.py:\d+"):
        stoppable.fault(record(b"bad"))
