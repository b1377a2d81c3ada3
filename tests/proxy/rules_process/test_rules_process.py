"""Rules run in a separate process, which bounds their cost. Only costs that the data cause result in a verdict."""

import gc
import json
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sluicegate.proxy.rules_process.messages import EvaluatorKind, RulesOperation, Specification, fields_of
from sluicegate.proxy.rules_process.reports import EvaluationOutcome
from sluicegate.proxy.rules_process.rule_limits import RuleLimits, TooCostly
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.scheduling.wait_budget import WaitBudget, WaitNotAllowed
from sluicegate.validation.rules.rule import Outage
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from tests.broker.eventually import eventually
from tests.proxy.rules_process.processes import children_of, is_alive
from tests.proxy.rules_process.slow_rules import install_slow_rules
from tests.validation.rules.records import record

SECONDS = 1.0
MEMORY = 128 << 20
DOES = Specification(EvaluatorKind.CUSTOM_RULE, name="does")
DEEP = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(28)}
CHAIN = {"$ref": "#/$defs/d0", "$defs": {**DEEP, "d28": {"type": "integer"}}}
"""Each definition refers twice to the next one, so that 2^28 paths reach a value."""


class RecordedReports:
    """Records what the rules process reports."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.exhausted: list[tuple[object, str, str]] = []
        self.reasons: list[str] = []

    def evaluated(self, outcome: str) -> None:
        self.ended.append(outcome)

    def limit_exceeded(self, client: object, limit: str, kind: str) -> None:
        self.exhausted.append((client, limit, kind))

    def replaced(self, reason: str) -> None:
        self.reasons.append(reason)


@pytest.fixture
def recorded_reports() -> RecordedReports:
    return RecordedReports()


@pytest.fixture
def process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded_reports: RecordedReports
) -> Iterator[RulesProcess]:
    install_slow_rules(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    made = RulesProcess(RuleLimits(SECONDS, MEMORY), WaitBudget(), recorded_reports)
    yield made
    pid = made.pid
    made.close()
    assert pid is None or not is_alive(pid)


def schema_specification(kind: EvaluatorKind, text: Any) -> Specification:
    return Specification(kind, json.dumps(text).encode())


def evaluate(process: RulesProcess, what: str) -> str | None:
    return process.ask(DOES, RulesOperation.FAULT, fields_of(record(what.encode())))


class ReadContents:
    """The data of a request."""


@pytest.mark.parametrize("what", ["spin 100", "take 1000000000", "out", "fail", "die 9"])
def test_failed_evaluation_keeps_no_reference_to_request_contents(process: RulesProcess, what: str) -> None:
    def fail_with_contents() -> "weakref.ref[ReadContents]":
        contents = ReadContents()
        with pytest.raises((TooCostly, Outage, SchemaUnusable)):
            evaluate(process, what)
        return weakref.ref(contents)

    gc.disable()
    try:
        contents = fail_with_contents()
        eventually(lambda: contents() is None, seconds=5)
    finally:
        gc.enable()


def test_the_rules_process_gives_the_same_results_as_inline_evaluation(process: RulesProcess) -> None:
    shape = schema_specification(EvaluatorKind.JSON, {"type": "object", "required": ["a"], "title": "Shape"})
    number = schema_specification(
        EvaluatorKind.AVRO, {"type": "record", "name": "n.Number", "fields": [{"name": "a", "type": "int"}]}
    )
    expression = Specification(EvaluatorKind.EXPRESSION, b"value.a > 1")

    assert process.ask(shape, RulesOperation.FAULT, b'{"a": 1}') is None
    assert (process.ask(shape, RulesOperation.FAULT, b"{}") or "").startswith("does not match its JSON Schema")
    assert process.ask(shape, RulesOperation.RECORD_NAME, b"{}") == "Shape"
    assert process.ask(number, RulesOperation.FAULT, b"\x02") is None
    assert process.ask(number, RulesOperation.RECORD_NAME, b"\x02") == "n.Number"
    assert process.ask(number, RulesOperation.FAULT, b"") is not None
    assert process.ask(expression, RulesOperation.FAULT, fields_of(record(b'{"a": 2}'))) is None
    assert process.ask(expression, RulesOperation.FAULT, fields_of(record(b'{"a": 1}'))) is not None
    assert evaluate(process, "bad") == "is bad"
    assert evaluate(process, "good") is None


def test_an_evaluation_in_c_code_is_stopped_at_its_time_limit(
    process: RulesProcess, recorded_reports: RecordedReports
) -> None:
    chain = schema_specification(EvaluatorKind.JSON, CHAIN)
    began = time.process_time()

    for ask in (lambda: process.ask(chain, RulesOperation.FAULT, b"1"), lambda: evaluate(process, "spin 60")):
        with pytest.raises((TooCostly, SchemaUnusable), match=r"limits\.rule_cpu_seconds \(1 s"):
            ask()
        assert evaluate(process, "good") is None

    assert time.process_time() - began < SECONDS, "this process did no part of the work"
    assert [how for _, how, _ in recorded_reports.exhausted] == [EvaluationOutcome.OVER_SECONDS] * 2
    assert recorded_reports.reasons == [], "this is not a crash"


def test_records_of_a_request_share_one_cpu_time_budget(process: RulesProcess) -> None:
    wait_budget = process._wait_budget
    evaluate(process, "good")
    with wait_budget.limit_waiting(2.0, (lock := threading.Lock()), "client"), lock:
        for _ in range(2):
            evaluate(process, "spin 0.4")
        with pytest.raises(TooCostly):
            evaluate(process, "spin 0.4")
        with pytest.raises(TooCostly):
            evaluate(process, "good")
    with wait_budget.limit_waiting(2.0, lock, "client"), lock:
        assert evaluate(process, "spin 0.4") is None, "another request has its own budget"


@pytest.mark.parametrize("text", [{"pattern": "^(?:(?=a)a+)+$"}, {"not": {"pattern": "^(a|\\1a)*$(?!b)"}}])
def test_catastrophic_backtracking_is_stopped_at_cpu_time_limit(process: RulesProcess, text: dict[str, Any]) -> None:
    looking = schema_specification(EvaluatorKind.JSON, text)

    assert process.ask(looking, RulesOperation.FAULT, b'"b"') is not None or "not" in text
    with pytest.raises(TooCostly, match=r"limits\.rule_cpu_seconds"):
        process.ask(looking, RulesOperation.FAULT, b'"' + b"a" * 60 + b'b"')
    assert evaluate(process, "good") is None


def test_evaluation_exceeding_memory_limit_is_too_costly(
    process: RulesProcess, recorded_reports: RecordedReports
) -> None:
    assert evaluate(process, f"take {MEMORY // 2}") is None
    for much in (MEMORY, 1 << 40):
        with pytest.raises(TooCostly, match=r"limits\.rule_memory_bytes"):
            evaluate(process, f"take {much}")
        assert evaluate(process, "good") is None
    with pytest.raises(TooCostly, match=r"limits\.rule_memory_bytes"):
        process.ask(schema_specification(EvaluatorKind.JSON, True), RulesOperation.FAULT, bytes(3 * MEMORY))
    assert evaluate(process, "good") is None
    assert {how for _, how, _ in recorded_reports.exhausted} == {EvaluationOutcome.OVER_MEMORY}


def test_a_failed_allocation_in_rust_or_cpp_is_too_costly(process: RulesProcess) -> None:
    patterns = {"properties": {f"p{i}": {"pattern": f"^(a|b|c{i}){{1,400}}x*$"} for i in range(1500)}}
    with pytest.raises(TooCostly, match=r"limits\.rule_memory_bytes|limits\.rule_cpu_seconds"):
        process.compile(schema_specification(EvaluatorKind.JSON, patterns))
    assert evaluate(process, "good") is None


def test_process_is_replaced_before_leaked_memory_exhausts_it(
    process: RulesProcess, recorded_reports: RecordedReports
) -> None:
    pids = set()
    for _ in range(20):
        assert evaluate(process, f"keep {MEMORY // 8}") is None
        pids.add(evaluate(process, "pid"))
    assert len(pids) > 2, "the process was replaced before the memory was exhausted"
    assert (recorded_reports.exhausted, recorded_reports.reasons) == ([], [])


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM])
def test_crashed_or_killed_process_is_reported_as_outage_and_replaced(
    process: RulesProcess, recorded_reports: RecordedReports, ended_by: signal.Signals
) -> None:
    with pytest.raises(Outage, match=ended_by.name):
        evaluate(process, f"die {ended_by.value}")

    assert evaluate(process, "good") is None
    assert len(recorded_reports.reasons) == 1
    assert recorded_reports.exhausted == []
    assert EvaluationOutcome.OUTAGE in recorded_reports.ended


def test_evaluator_killed_by_another_process_is_replaced(process: RulesProcess) -> None:
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(evaluate, process, "sleep 60")
        eventually(lambda: process.pid is not None and len(children_of(process.pid)) == 1, 60, "an evaluator")
        assert process.pid is not None
        os.kill(children_of(process.pid)[0], signal.SIGKILL)
        with pytest.raises(Outage, match="SIGKILL"):
            asked.result()
    assert evaluate(process, "good") is None


@pytest.mark.parametrize("victim", ["host", "evaluator"])
def test_an_idle_process_that_is_killed_is_reported_and_replaced_without_an_outage(
    process: RulesProcess, recorded_reports: RecordedReports, victim: str
) -> None:
    assert evaluate(process, "good") is None
    assert process.pid is not None
    before, evaluator = process.pid, children_of(process.pid)[0]

    os.kill(before if victim == "host" else evaluator, signal.SIGKILL)

    eventually(lambda: recorded_reports.reasons == ["it was ended by SIGKILL"], 30, "a report")
    assert evaluate(process, "good") is None
    assert process.pid not in (None, before)
    assert EvaluationOutcome.OUTAGE not in recorded_reports.ended
    assert not is_alive(evaluator)


def test_outages_and_errors_of_custom_rules_are_raised_as_exceptions(process: RulesProcess) -> None:
    with pytest.raises(Outage, match="the other side is away"):
        evaluate(process, "out")
    with pytest.raises(SchemaUnusable, match=r"failed \(ValueError at slow_rules_of_a_test") as raised:
        evaluate(process, "fail")
    assert "secret" not in str(raised.value)


def test_compile_rejects_invalid_schema(process: RulesProcess) -> None:
    with pytest.raises(SchemaUnusable, match="the JSON Schema cannot be used"):
        process.compile(schema_specification(EvaluatorKind.JSON, {"type": "no type"}))
    response = process.compile(schema_specification(EvaluatorKind.JSON, {"type": "string"}))
    assert 0 < response.grown < 1 << 20


@pytest.mark.long
def test_cpu_time_limit_is_independent_of_machine_speed(
    process: RulesProcess, recorded_reports: RecordedReports
) -> None:
    """The process runs for a tenth of the time, so 0.4 s of CPU time take 4 s, which is not too costly."""
    assert process.pid is None
    evaluate(process, "good")
    assert process.pid is not None
    slowed = threading.Event()
    ends = threading.Event()

    def slow_down(group: int) -> None:
        while not ends.is_set():
            os.killpg(group, signal.SIGSTOP)
            slowed.set()
            ends.wait(0.045)
            os.killpg(group, signal.SIGCONT)
            ends.wait(0.005)

    slowing = threading.Thread(target=slow_down, args=(process.pid,))
    slowing.start()
    try:
        slowed.wait()
        began = time.monotonic()
        assert evaluate(process, "spin 0.4") is None
        assert time.monotonic() - began > 2 * SECONDS, "the process was slowed down"
        with pytest.raises(TooCostly):
            evaluate(process, "spin 60")
    finally:
        ends.set()
        slowing.join()
    assert [how for _, how, _ in recorded_reports.exhausted] == [EvaluationOutcome.OVER_SECONDS]


def test_a_client_that_exhausts_its_budget_is_served_after_others(process: RulesProcess) -> None:
    """Eight requests of one client are in line: another client is served after one of them, record by record."""
    wait_budget = process._wait_budget
    evaluate(process, "good")
    order: list[str] = []

    def ask_as_client(client: str, what: str, times: int) -> None:
        with (lock := threading.Lock()), wait_budget.limit_waiting(2.0, lock, client):
            for _ in range(times):
                try:
                    evaluate(process, what)
                except (TooCostly, Outage):
                    order.append(client)
                    return
                order.append(client)

    greedy = [threading.Thread(target=ask_as_client, args=("greedy", "spin 60", 1)) for _ in range(8)]
    for thread in greedy:
        thread.start()
    eventually(lambda: process._thread.waiting == 7, 60, "all in line")
    honest = threading.Thread(target=ask_as_client, args=("honest", "good", 20))
    honest.start()
    honest.join()
    process.close()
    for thread in greedy:
        thread.join()

    assert order.index("honest") <= 1
    assert order[order.index("honest") :][:20] == ["honest"] * 20


def test_evaluation_is_deferred_in_thread_that_may_not_block(process: RulesProcess) -> None:
    with process._wait_budget.never_waiting(), pytest.raises(WaitNotAllowed):
        evaluate(process, "good")


def test_close_stops_running_evaluations_and_all_processes(process: RulesProcess) -> None:
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(evaluate, process, "sleep 60") for _ in range(2)]
        eventually(lambda: process.pid is not None and len(children_of(process.pid)) == 1, 60, "an evaluator")
        assert process.pid is not None
        pids = [process.pid, *children_of(process.pid)]
        process.close()
        for future in asked:
            with pytest.raises(Outage):
                future.result()
    eventually(lambda: not any(map(is_alive, pids)), 10, "no process is left")
    with pytest.raises(Outage):
        evaluate(process, "good")


def test_a_prepared_rules_process_starts_before_the_first_evaluation(process: RulesProcess) -> None:
    process.prepare(frozenset({EvaluatorKind.JSON}))
    eventually(lambda: process.pid is not None and len(children_of(process.pid)) == 1, 60, "an evaluator")
    pid = process.pid
    assert process.ask(schema_specification(EvaluatorKind.JSON, True), RulesOperation.FAULT, b"1") is None
    assert process.pid == pid
    evaluate(process, "good")
    assert process.pid != pid, "the process needs other libraries now"
