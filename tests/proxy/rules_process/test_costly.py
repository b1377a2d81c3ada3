"""Costly evaluations wait in a queue and run in a separate process, for any number of clients."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from sluicegate.proxy.rules_process import rules_process
from sluicegate.proxy.rules_process.messages import EvaluatorKind, RulesOperation, Specification, fields_of
from sluicegate.proxy.rules_process.rule_limits import RuleLimits, TooCostly
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.scheduling.wait_budget import CpuTimeAllowance, WaitBudget, WaitNotAllowed
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from tests.broker.eventually import eventually
from tests.proxy.rules_process.processes import is_alive
from tests.proxy.rules_process.slow_rules import install_slow_rules
from tests.proxy.rules_process.test_rules_process import CHAIN, DOES, RecordedReports, schema_specification
from tests.validation.rules.records import record

SECONDS = 1.0


@pytest.fixture
def recorded_reports() -> RecordedReports:
    return RecordedReports()


@pytest.fixture
def process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded_reports: RecordedReports
) -> Iterator[RulesProcess]:
    install_slow_rules(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    made = RulesProcess(RuleLimits(SECONDS, 128 << 20), WaitBudget(), recorded_reports)
    yield made
    pids = [thread.pid for thread in (made._thread, made._costly)]
    made.close()
    assert not any(pid is not None and is_alive(pid) for pid in pids)


def evaluate_in_thread(
    process: RulesProcess, what: str, client: str, cpu_time: CpuTimeAllowance, times: int = 1
) -> str | None:
    """Ask about a record `times` times, as one request of a client in a thread with `cpu_time`."""
    words = None
    with (lock := threading.Lock()), process._wait_budget.limit_waiting(2.0, lock, client, cpu_time):
        for _ in range(times):
            words = process.ask(DOES, RulesOperation.FAULT, fields_of(record(what.encode())))
    return words


def test_evaluation_exceeding_its_slice_is_deferred_and_repeated_with_full_time(
    process: RulesProcess, recorded_reports: RecordedReports
) -> None:
    with pytest.raises(WaitNotAllowed):
        evaluate_in_thread(process, "spin 0.4", "a", CpuTimeAllowance.SLICE)
    assert (
        evaluate_in_thread(process, "bad", "a", CpuTimeAllowance.SLICE),
        evaluate_in_thread(process, "good", "a", CpuTimeAllowance.SLICE),
    ) == ("is bad", None)
    assert recorded_reports.exhausted == [], "a slice is not a limit"

    assert evaluate_in_thread(process, "spin 0.4", "a", CpuTimeAllowance.REST) is None
    with pytest.raises(TooCostly, match=r"limits\.rule_cpu_seconds \(1 s"):
        evaluate_in_thread(process, "spin 60", "a", CpuTimeAllowance.REST)
    assert len(recorded_reports.exhausted) == 1


def test_evaluation_is_too_costly_if_remaining_time_is_shorter_than_a_slice(process: RulesProcess) -> None:
    """With so little time left, another process could not evaluate more."""
    evaluate_in_thread(process, "good", "a", CpuTimeAllowance.SLICE)

    with (lock := threading.Lock()), process._wait_budget.limit_waiting(2.0, lock, "a", CpuTimeAllowance.SLICE):
        process._wait_budget.spent.evaluating_seconds = SECONDS - 0.02
        with pytest.raises(TooCostly):
            process.ask(DOES, RulesOperation.FAULT, fields_of(record(b"spin 60")))


def test_a_schema_that_is_costly_to_compile_is_deferred_to_a_thread(process: RulesProcess) -> None:
    chain = schema_specification(EvaluatorKind.JSON, CHAIN)
    deep = Specification(EvaluatorKind.JSON, b'{"allOf": [' * 4000 + b"{}" + b"]}" * 4000)

    with (lock := threading.Lock()), process._wait_budget.limit_waiting(2.0, lock, "a", CpuTimeAllowance.SLICE):
        with pytest.raises(WaitNotAllowed):
            process.ask(chain, RulesOperation.FAULT, b"1")
        with pytest.raises((SchemaUnusable, WaitNotAllowed)):
            process.compile(deep)


def test_look_ahead_with_costly_record_is_deferred_as_a_whole(process: RulesProcess) -> None:
    subjects = [fields_of(record(what)) for what in (b"good", b"bad", b"spin 60", b"bad")]

    lock, waits = threading.Lock(), process._wait_budget.limit_waiting
    with lock, waits(2.0, lock, "a", CpuTimeAllowance.SLICE), pytest.raises(WaitNotAllowed):
        process.look_ahead(DOES, RulesOperation.FAULT, subjects)
    with lock, process._wait_budget.limit_waiting(2.0, lock, "a", CpuTimeAllowance.REST):
        process.look_ahead(DOES, RulesOperation.FAULT, subjects)
        assert process.ask(DOES, RulesOperation.FAULT, subjects[1]) == "is bad"
        with pytest.raises(TooCostly):
            process.ask(DOES, RulesOperation.FAULT, subjects[2])


def test_cheap_evaluations_do_not_wait_for_costly_ones_of_forty_clients(
    process: RulesProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules_process, "_TURN_SECONDS", 600.0)  # even on a busy machine, no client stops waiting
    evaluate_in_thread(process, "good", "honest", CpuTimeAllowance.SLICE)

    def ask_as_client(client: str) -> str:
        try:
            with suppress(WaitNotAllowed):
                evaluate_in_thread(process, "spin 60", client, CpuTimeAllowance.SLICE)
            evaluate_in_thread(process, "spin 60", client, CpuTimeAllowance.REST)
        except Exception as error:
            return type(error).__name__
        return "done"

    with ThreadPoolExecutor(40) as clients:
        outcomes = [clients.submit(ask_as_client, f"costly-{number}") for number in range(40)]
        evaluate_in_thread(process, "good", "honest", CpuTimeAllowance.SLICE, times=200)
        ended = sum(outcome.done() for outcome in outcomes)
        process.close()

    # One costly evaluation takes a second of CPU time. The slices of all 40 take two seconds together.
    assert ended < 20, f"{ended} of 40 costly evaluations ended before 200 cheap ones"
    assert {outcome.result() for outcome in outcomes} <= {"TooCostly", "Outage"}


def test_idle_process_for_costly_evaluations_is_stopped(process: RulesProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process._costly, "_idle_seconds", 0.2)
    assert evaluate_in_thread(process, "spin 0.1", "a", CpuTimeAllowance.REST) is None
    pid = process._costly.pid
    assert pid is not None

    eventually(lambda: process._costly.pid is None)

    eventually(lambda: not is_alive(pid))
    assert evaluate_in_thread(process, "bad", "a", CpuTimeAllowance.REST) == "is bad"
