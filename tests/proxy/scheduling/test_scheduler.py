"""A request is validated on the loop or in a thread, in a fair order, and every validation ends."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from sluicegate.proxy.responses.dispatch import Dispatch, dispatch_of
from sluicegate.proxy.responses.log_starts import LogStarts
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.scheduling.scheduler import Scheduler, is_heavy
from sluicegate.proxy.scheduling.validation_thread import Job
from sluicegate.proxy.scheduling.wait_budget import CpuTimeAllowance, WaitBudget, WaitNotAllowed
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.rulebook import FilePolicies, Rulebook
from sluicegate.validation.rules.rule import Mode, NamedRule, Part, RuledRecord
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.validated_request import ValidatedRequest
from tests.wire.batches import GZIP, NONE, ZSTD, Rec, batch
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
VERSION = 9
MIB = 1 << 20


def request_of(*records: bytes) -> ProduceRequest:
    body = produce_body(VERSION, [topic_data("t", *enumerate(records))])
    return walk_produce_request(bytearray(body), VERSION, 0, 10_000)


def large_batch(size: int, codec: int = GZIP) -> bytes:
    """Return a batch of `size` plain bytes that compresses to about a hundredth of that."""
    chance = random.Random(1)
    return batch([Rec(NOW, value=chance.randbytes(8192) + bytes(MIB - 8192)) for _ in range(size // MIB)], codec)


@pytest.fixture
def steps() -> list[Callable[[], None]]:
    """Return the event loop's next steps."""
    return []


@pytest.fixture
def scheduler(steps: list[Callable[[], None]]) -> Iterator[Scheduler]:
    def prepare_dispatch(
        request: ProduceRequest, validated: ValidatedRequest, give_way: Callable[[], None]
    ) -> Dispatch:
        return dispatch_of(request, validated, LogStarts(), NOW, give_way)

    rules = RulesInForce(Rulebook(FilePolicies(TopicPolicy(), ())))
    # For the loop's limit, no time passes, even on a busy machine.
    made = Scheduler({}, rules, ValidationLimits(), lambda: NOW, prepare_dispatch, steps.append, seconds=lambda: 0.0)
    yield made
    made.close()


def test_a_short_validation_runs_on_the_event_loop(scheduler: Scheduler) -> None:
    dispatch = scheduler.validate(request_of(batch([Rec(NOW)], NONE), batch([Rec(NOW)], ZSTD)))

    assert dispatch is not None
    assert len(dispatch.validated.accepted) == 2


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_request_with_large_decompressed_size_is_validated_in_a_thread(scheduler: Scheduler, codec: int) -> None:
    request = request_of(large_batch(16 * MIB, codec))
    assert not is_heavy(request)

    assert scheduler.validate(request) is None
    verdict = scheduler.submit(request, Account()).future.result(timeout=30)
    assert len(verdict.validated.accepted) == 1


def test_a_request_with_many_partitions_is_validated_in_a_thread(scheduler: Scheduler) -> None:
    request = request_of(*[batch([Rec(NOW)])] * 300)

    assert scheduler.validate(request) is None
    assert len(scheduler.submit(request, Account()).future.result(timeout=30).validated.accepted) == 300


def test_total_time_of_inline_validation_between_two_polls_is_bounded(
    scheduler: Scheduler, steps: list[Callable[[], None]]
) -> None:
    request = request_of(large_batch(3 * MIB, ZSTD))
    at_once = 0
    while scheduler.validate(request) is not None:
        at_once += 1
        assert at_once < 10

    assert at_once >= 1
    for step in steps:
        step()
    assert scheduler.validate(request) is not None


def test_dispatch_that_is_slow_to_build_is_built_in_a_thread(steps: list[Callable[[], None]]) -> None:
    now = 0.0

    def prepare_dispatch(
        request: ProduceRequest, validated: ValidatedRequest, give_way: Callable[[], None]
    ) -> Dispatch:
        nonlocal now
        now += 1.0
        give_way()
        return dispatch_of(request, validated, LogStarts(), NOW, give_way)

    damaged = bytearray(batch([Rec(NOW)]))
    damaged[-1] ^= 1
    rules = RulesInForce(Rulebook(FilePolicies(TopicPolicy(), ())))
    limits = ValidationLimits()
    scheduler = Scheduler({}, rules, limits, lambda: NOW, prepare_dispatch, steps.append, seconds=lambda: now)

    assert scheduler.validate(request_of(bytes(damaged))) is None
    job = scheduler.submit(request_of(bytes(damaged)), Account())
    assert len(job.future.result(timeout=30).validated.rejected) == 1
    scheduler.close()


def test_abandoned_validation_ends_soon(scheduler: Scheduler) -> None:
    account = Account()
    jobs = [scheduler.submit(request_of(*[large_batch(5 * MIB)] * 20), account) for _ in range(4)]
    _wait_until(lambda: not account.is_new)

    for job in jobs:
        scheduler.abandon(job)

    _wait_until(lambda: all(job.future.done() for job in jobs))
    assert any(job.future.cancelled() for job in jobs)
    assert scheduler.submit(request_of(large_batch(8 * MIB)), Account()).future.result(timeout=30).validated.accepted


def test_closing_the_scheduler_does_not_wait_for_long_validations(scheduler: Scheduler) -> None:
    account = Account()
    jobs: list[Job] = [scheduler.submit(request_of(*[large_batch(5 * MIB)] * 20), account) for _ in range(3)]
    _wait_until(lambda: not account.is_new)

    began = time.monotonic()
    scheduler.close()

    assert time.monotonic() - began < 2
    futures: list[Future[Dispatch]] = [job.future for job in jobs]
    assert not all(future.done() and not future.cancelled() for future in futures)


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


class SlowRule:
    """A rule that needs more CPU time than a slice. `given`: the CPU time of each thread that has asked it."""

    parts = Part.VALUE
    is_slow = True

    def __init__(self, wait_budget: WaitBudget) -> None:
        self.given: list[CpuTimeAllowance] = []
        self._wait_budget = wait_budget

    def fault(self, _record: RuledRecord) -> str | None:
        self._wait_budget.require_waiting_allowed()
        self.given.append(self._wait_budget.cpu_time)
        if self._wait_budget.cpu_time is CpuTimeAllowance.SLICE:
            raise WaitNotAllowed
        return "is bad"

    def description(self, _record: RuledRecord) -> str | None:
        return None


def test_job_that_exceeds_its_cpu_slice_restarts_in_the_thread_for_costly_jobs(
    steps: list[Callable[[], None]],
) -> None:
    wait_budget = WaitBudget()
    rule = SlowRule(wait_budget)
    policy = TopicPolicy(rules=RuleSet([NamedRule("slow", rule, Mode.REJECT)]))

    def prepare_dispatch(
        request: ProduceRequest, validated: ValidatedRequest, give_way: Callable[[], None]
    ) -> Dispatch:
        return dispatch_of(request, validated, LogStarts(), NOW, give_way)

    rules = RulesInForce(Rulebook(FilePolicies(policy, ())))
    made = Scheduler(
        {}, rules, ValidationLimits(), lambda: NOW, prepare_dispatch, steps.append, wait_budget=wait_budget
    )
    try:
        job = made.submit(request_of(batch([Rec(NOW, value=b"v")])), Account())
        dispatch = job.future.result(30)
    finally:
        made.close()

    assert rule.given == [CpuTimeAllowance.SLICE, CpuTimeAllowance.REST]
    assert set(dispatch.validated.rejected) == {(0, 0)}


def test_large_uncompressed_record_is_validated_without_a_cpu_slice() -> None:
    """It is no decompressed byte, so it may be larger than `limits.max_decompressed_bytes`."""
    wait_budget = WaitBudget()
    rule = SlowRule(wait_budget)
    policy = TopicPolicy(rules=RuleSet([NamedRule("slow", rule, Mode.REJECT)]))

    def prepare_dispatch(
        request: ProduceRequest, validated: ValidatedRequest, give_way: Callable[[], None]
    ) -> Dispatch:
        return dispatch_of(request, validated, LogStarts(), NOW, give_way)

    rules = RulesInForce(Rulebook(FilePolicies(policy, ())))
    limits = ValidationLimits(max_decompressed_bytes=2 * MIB)
    made = Scheduler({}, rules, limits, lambda: NOW, prepare_dispatch, lambda _step: None, wait_budget=wait_budget)
    try:
        job = made.submit(request_of(batch([Rec(NOW, value=bytes(3 * MIB))])), Account())
        dispatch = job.future.result(30)
    finally:
        made.close()

    assert set(dispatch.validated.rejected) == {(0, 0)}
    assert rule.given == [CpuTimeAllowance.REST]
