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
from sluicegate.proxy.rules_process.rule_limits import RuleLimits, TooCostly
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.rules_process.stoppable import StoppableContent
from sluicegate.proxy.scheduling.wait_budget import WaitBudget, WaitNotAllowed
from sluicegate.validation.rules.rule import Outage, Side, StepBudget
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from sluicegate.validation.rules.schemas.schema_file import Envelope, FollowsSchema
from tests.proxy.rules_process.slow_rules import install_slow_rules
from tests.proxy.rules_process.test_rules_process import RecordedReports
from tests.validation.rules.records import record

SECONDS = 1.0
DOES = Specification(EvaluatorKind.CUSTOM_RULE, name="does")
OTHER = Specification(EvaluatorKind.CUSTOM_RULE, name="does")


class AskedRulesProcess:
    """A rules process, and requests to it."""

    def __init__(self) -> None:
        self.seen = RecordedReports()
        self.wait_budget = WaitBudget()
        self.process = RulesProcess(RuleLimits(SECONDS, 128 << 20), self.wait_budget, self.seen)

    @contextmanager
    def request_of(self, client: str) -> Iterator[None]:
        lock = threading.Lock()
        with lock, self.wait_budget.limit_waiting(60, lock, client):
            yield

    def verdicts(self, *values: str, rule: Specification = DOES) -> list[str | type[Exception] | None]:
        """Return the fault of each value, or the exception type."""
        return [self._verdict(rule, fields) for fields in record_fields(*values)]

    def _verdict(self, rule: Specification, fields: RecordFields) -> str | type[Exception] | None:
        try:
            return self.process.ask(rule, RulesOperation.FAULT, fields)
        except (Outage, SchemaUnusable, TooCostly) as error:
            return type(error)


def record_fields(*values: str) -> list[RecordFields]:
    return [fields_of(record(value.encode())) for value in values]


@pytest.fixture
def asked_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AskedRulesProcess]:
    install_slow_rules(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    made = AskedRulesProcess()
    yield made
    made.process.close()


@pytest.mark.parametrize("looks_ahead", [True, False])
def test_look_ahead_changes_no_verdict_on_a_record(asked_process: AskedRulesProcess, looks_ahead: bool) -> None:
    values = ["good", "bad", "good 2", "fail", "good 3", "out", "bad", "spin 60", "good 4"]
    with asked_process.request_of("a"):
        if looks_ahead:
            asked_process.process.look_ahead(DOES, RulesOperation.FAULT, record_fields(*values))
        found = asked_process.verdicts(*values)
    assert found == [None, "is bad", None, SchemaUnusable, None, Outage, "is bad", TooCostly, TooCostly]


@pytest.mark.parametrize(
    ("costly", "limit"),
    [("spin 60", EvaluationOutcome.OVER_SECONDS), (f"take {1 << 30}", EvaluationOutcome.OVER_MEMORY)],
)
def test_look_ahead_finds_costly_record_and_evaluates_earlier_ones_once(
    asked_process: AskedRulesProcess, costly: str, limit: EvaluationOutcome
) -> None:
    values = ["good 1", "good 2", "good 3", costly]
    with asked_process.request_of("before"):
        assert asked_process.verdicts("good", rule=OTHER) == [None]  # so that the process has already been used
    asked_process.seen.ended.clear()
    with asked_process.request_of("a"):
        asked_process.process.look_ahead(DOES, RulesOperation.FAULT, record_fields(*values))
        assert asked_process.verdicts(*values) == [None, None, None, TooCostly]
    assert asked_process.seen.ended == [*[EvaluationOutcome.DONE.value] * 3, limit.value]
    assert asked_process.seen.exhausted == [("a", limit.value, "custom rule")]


def test_too_costly_rule_keeps_verdicts_of_other_rule_on_earlier_records(
    asked_process: AskedRulesProcess,
) -> None:
    first, second = ["good 1", "spin 60", "good 3"], ["good 1", "good 2", "good 3"]
    with asked_process.request_of("a"):
        asked_process.process.look_ahead(DOES, RulesOperation.FAULT, record_fields(*first))
        asked_process.process.look_ahead(OTHER, RulesOperation.FAULT, record_fields(*second))
        found = [
            (*asked_process.verdicts(one), *asked_process.verdicts(other, rule=OTHER))
            for one, other in zip(first, second, strict=True)
        ]
    assert found == [(None, None), (TooCostly, TooCostly), (TooCostly, TooCostly)]


@pytest.mark.parametrize("framing", [Envelope.NONE, Envelope.CONFLUENT])
def test_records_of_schema_costly_to_compile_are_validated_in_one_request(
    asked_process: AskedRulesProcess, framing: Envelope
) -> None:
    specification = Specification(EvaluatorKind.JSON, b'{"required": ["id"]}')
    rule = FollowsSchema(Side.VALUE, StoppableContent(specification, None, asked_process.process), framing)
    prefix = b"" if framing is Envelope.NONE else b"\0\0\0\0\7"
    values = [b'{"id": 1}', b"{}", b'{"id": 1}', b"no json", None]
    batch = [record(None if value is None else prefix + value) for value in values]

    with asked_process.request_of("a"):
        rule.look_ahead(batch, StepBudget())
        asked_process.process.close()  # the process gets no second request
        assert [rule.fault(each) is None for each in batch] == [True, False, True, False, True]


def test_look_ahead_returns_a_verdict_for_each_of_several_equal_records(asked_process: AskedRulesProcess) -> None:
    with asked_process.request_of("a"):
        asked_process.process.look_ahead(DOES, RulesOperation.FAULT, record_fields("bad", "bad", "good", "bad"))
        assert asked_process.verdicts("bad", "bad", "good", "bad") == ["is bad", "is bad", None, "is bad"]


def test_other_client_is_served_before_look_ahead_completes(asked_process: AskedRulesProcess) -> None:
    order: list[str] = []
    begun = threading.Event()

    def evaluate_greedily() -> None:
        with asked_process.request_of("greedy"):
            assert asked_process.verdicts("good") == [None]
            begun.set()
            asked_process.process.look_ahead(
                DOES, RulesOperation.FAULT, record_fields(*[f"spin 0.02{n}" for n in range(30)])
            )
            order.append("greedy")

    thread = threading.Thread(target=evaluate_greedily)
    thread.start()
    assert begun.wait(60)
    with asked_process.request_of("honest"):
        assert asked_process.verdicts("good") == [None]
        order.append("honest")
    thread.join()
    assert order == ["honest", "greedy"]


def test_look_ahead_is_deferred_in_thread_that_may_not_block(asked_process: AskedRulesProcess) -> None:
    with asked_process.wait_budget.never_waiting(), pytest.raises(WaitNotAllowed):
        asked_process.process.look_ahead(DOES, RulesOperation.FAULT, record_fields("good", "good"))
