"""Records that are evaluated together in advance get the same verdicts as records that are evaluated one by one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sluicegate.proxy.rules_process.messages import (
    EvaluatorKind,
    RecordFields,
    RulesOperation,
    Specification,
    fields_of,
)
from sluicegate.proxy.rules_process.reports import EvaluationOutcome
from sluicegate.proxy.rules_process.rule_limits import EvaluationTooCostly, RuleLimits
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.rules_process.stoppable import StoppableContent
from sluicegate.proxy.scheduling.wait_budget import WaitBudget, WaitNotAllowed
from sluicegate.validation.rules.rule import Outage, Side, StepBudget
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from sluicegate.validation.rules.schemas.schema_file import Envelope, RequireSchema
from tests.proxy.rules_process.slow_rules import install_slow_rules
from tests.proxy.rules_process.test_rules_process import ReportRecorder
from tests.validation.rules.records import record

SECONDS = 1.0
DOES = Specification(EvaluatorKind.CUSTOM_RULE, name="does")
OTHER = Specification(EvaluatorKind.CUSTOM_RULE, name="does")


class RulesProcessHarness:
    """A rules process, and requests to it."""

    def __init__(self) -> None:
        self.seen = ReportRecorder()
        self.wait_budget = WaitBudget()
        self.process = RulesProcess(RuleLimits(SECONDS, 128 << 20), self.wait_budget, self.seen)

    @contextmanager
    def request_of_client(self, client: str) -> Iterator[None]:
        lock = threading.Lock()
        with lock, self.wait_budget.limit_waiting(60, lock, client):
            yield

    def evaluate_values(self, *values: str, rule: Specification = DOES) -> list[str | type[Exception] | None]:
        """Return the fault of each value, or the exception type."""
        return [self._verdict(rule, fields) for fields in build_record_fields(*values)]

    def _verdict(self, rule: Specification, fields: RecordFields) -> str | type[Exception] | None:
        try:
            return self.process.ask(rule, RulesOperation.FAULT, fields)
        except (Outage, SchemaUnusable, EvaluationTooCostly) as error:
            return type(error)


def build_record_fields(*values: str) -> list[RecordFields]:
    return [fields_of(record(value.encode())) for value in values]


@pytest.fixture
def rules_process_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RulesProcessHarness]:
    install_slow_rules(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    made = RulesProcessHarness()
    yield made
    made.process.close()


@pytest.mark.parametrize("looks_ahead", [True, False])
def test_look_ahead_changes_no_verdict_on_a_record(
    rules_process_harness: RulesProcessHarness, looks_ahead: bool
) -> None:
    values = ["good", "bad", "good 2", "fail", "good 3", "out", "bad", "spin 60", "good 4"]
    with rules_process_harness.request_of_client("a"):
        if looks_ahead:
            rules_process_harness.process.evaluate_ahead(DOES, RulesOperation.FAULT, build_record_fields(*values))
        found = rules_process_harness.evaluate_values(*values)
    assert found == [
        None,
        "is bad",
        None,
        SchemaUnusable,
        None,
        Outage,
        "is bad",
        EvaluationTooCostly,
        EvaluationTooCostly,
    ]


@pytest.mark.parametrize(
    ("costly", "limit"),
    [("spin 60", EvaluationOutcome.OVER_SECONDS), (f"take {1 << 30}", EvaluationOutcome.OVER_MEMORY)],
)
def test_look_ahead_finds_costly_record_and_evaluates_earlier_ones_once(
    rules_process_harness: RulesProcessHarness, costly: str, limit: EvaluationOutcome
) -> None:
    values = ["good 1", "good 2", "good 3", costly]
    with rules_process_harness.request_of_client("before"):
        assert rules_process_harness.evaluate_values("good", rule=OTHER) == [
            None
        ]  # so that the process has already been used
    rules_process_harness.seen.ended.clear()
    with rules_process_harness.request_of_client("a"):
        rules_process_harness.process.evaluate_ahead(DOES, RulesOperation.FAULT, build_record_fields(*values))
        assert rules_process_harness.evaluate_values(*values) == [None, None, None, EvaluationTooCostly]
    assert rules_process_harness.seen.ended == [*[EvaluationOutcome.DONE.value] * 3, limit.value]
    assert rules_process_harness.seen.exhausted == [("a", limit.value, "custom rule")]


def test_too_costly_rule_keeps_verdicts_of_other_rule_on_earlier_records(
    rules_process_harness: RulesProcessHarness,
) -> None:
    first, second = ["good 1", "spin 60", "good 3"], ["good 1", "good 2", "good 3"]
    with rules_process_harness.request_of_client("a"):
        rules_process_harness.process.evaluate_ahead(DOES, RulesOperation.FAULT, build_record_fields(*first))
        rules_process_harness.process.evaluate_ahead(OTHER, RulesOperation.FAULT, build_record_fields(*second))
        found = [
            (*rules_process_harness.evaluate_values(one), *rules_process_harness.evaluate_values(other, rule=OTHER))
            for one, other in zip(first, second, strict=True)
        ]
    assert found == [
        (None, None),
        (EvaluationTooCostly, EvaluationTooCostly),
        (EvaluationTooCostly, EvaluationTooCostly),
    ]


@pytest.mark.parametrize("framing", [Envelope.NONE, Envelope.CONFLUENT])
def test_records_of_schema_costly_to_compile_are_validated_in_one_request(
    rules_process_harness: RulesProcessHarness, framing: Envelope
) -> None:
    specification = Specification(EvaluatorKind.JSON, b'{"required": ["id"]}')
    rule = RequireSchema(Side.VALUE, StoppableContent(specification, None, rules_process_harness.process), framing)
    prefix = b"" if framing is Envelope.NONE else b"\0\0\0\0\7"
    values = [b'{"id": 1}', b"{}", b'{"id": 1}', b"no json", None]
    batch = [record(None if value is None else prefix + value) for value in values]

    with rules_process_harness.request_of_client("a"):
        rule.evaluate_ahead(batch, StepBudget())
        rules_process_harness.process.close()  # the process gets no second request
        assert [rule.fault(each) is None for each in batch] == [True, False, True, False, True]


def test_look_ahead_returns_a_verdict_for_each_of_several_equal_records(
    rules_process_harness: RulesProcessHarness,
) -> None:
    with rules_process_harness.request_of_client("a"):
        rules_process_harness.process.evaluate_ahead(
            DOES, RulesOperation.FAULT, build_record_fields("bad", "bad", "good", "bad")
        )
        assert rules_process_harness.evaluate_values("bad", "bad", "good", "bad") == [
            "is bad",
            "is bad",
            None,
            "is bad",
        ]


def test_other_client_is_served_before_look_ahead_completes(rules_process_harness: RulesProcessHarness) -> None:
    order: list[str] = []
    begun = threading.Event()

    def evaluate_thirty_slow_records() -> None:
        with rules_process_harness.request_of_client("greedy"):
            assert rules_process_harness.evaluate_values("good") == [None]
            begun.set()
            rules_process_harness.process.evaluate_ahead(
                DOES, RulesOperation.FAULT, build_record_fields(*[f"spin 0.02{n}" for n in range(30)])
            )
            order.append("greedy")

    thread = threading.Thread(target=evaluate_thirty_slow_records)
    thread.start()
    assert begun.wait(60)
    with rules_process_harness.request_of_client("honest"):
        assert rules_process_harness.evaluate_values("good") == [None]
        order.append("honest")
    thread.join()
    assert order == ["honest", "greedy"]


def test_look_ahead_is_deferred_in_thread_that_may_not_block(rules_process_harness: RulesProcessHarness) -> None:
    with rules_process_harness.wait_budget.forbid_waiting(), pytest.raises(WaitNotAllowed):
        rules_process_harness.process.evaluate_ahead(DOES, RulesOperation.FAULT, build_record_fields("good", "good"))
