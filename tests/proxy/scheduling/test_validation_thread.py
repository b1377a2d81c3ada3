"""Tests which jobs the validation thread validates first, and how many with large records it validates at once.

In these tests, jobs burn CPU time, and waits are measured in CPU time, so that a busy machine changes nothing.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass, field
from time import thread_time

import pytest

from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import OutOfTime
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.scheduling.validation_thread import MOST_HELD_BYTES, Job, ValidationThread
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.in_force import PolicyMemo
from sluicegate.validation.validated_request import ValidatedRequest
from tests.broker.eventually import eventually
from tests.wire.raw_client import produce_body

SECONDS = 120.0
_STEP_SECONDS = 0.0002


def no_request() -> ProduceRequest:
    return walk_produce_request(bytearray(produce_body(9, [])), 9, 0, 10)


@dataclass(eq=False)
class CpuBurner:
    """Validates a job by burning the CPU time that is set for it. `burnt`: the CPU time of all jobs so far."""

    seconds: dict[Job, float] = field(default_factory=dict)
    held_bytes: dict[Job, int] = field(default_factory=dict)
    burnt: float = 0.0
    starts: list[Job] = field(default_factory=list)
    done: list[Job] = field(default_factory=list)
    large_at_once: int = 0
    most_large_at_once: int = 0

    def validate(
        self, job: Job, _decompressor: Decompressor, _memo: PolicyMemo, give_way: Callable[[], None], most_held: int
    ) -> Dispatch:
        self.starts.append(job)
        is_large = self.held_bytes.get(job, 0) > MOST_HELD_BYTES
        if self.held_bytes.get(job, 0) > most_held:
            raise OutOfTime
        self.large_at_once += is_large
        self.most_large_at_once = max(self.most_large_at_once, self.large_at_once)
        try:
            self._burn(self.seconds[job], give_way)
        finally:
            self.large_at_once -= is_large
        self.done.append(job)
        return Dispatch(ValidatedRequest(), None, None)

    def _burn(self, seconds: float, give_way: Callable[[], None]) -> None:
        while seconds > 0:
            since = thread_time()
            while thread_time() - since < _STEP_SECONDS:
                pass
            spent = thread_time() - since
            self.burnt += spent
            seconds -= spent
            give_way()


@pytest.fixture
def burner() -> CpuBurner:
    return CpuBurner()


@pytest.fixture
def thread(burner: CpuBurner) -> Iterator[ValidationThread]:
    made = ValidationThread(burner.validate, lambda _job: None, WaitBudget())
    yield made
    made.close()


@pytest.fixture
def submit(burner: CpuBurner, thread: ValidationThread) -> Callable[..., Job]:
    def submit_job(seconds: float, account: Account | None = None, held_bytes: int = 0) -> Job:
        job = Job(no_request(), account if account is not None else Account(), None)
        burner.seconds[job] = seconds
        burner.held_bytes[job] = held_bytes
        thread.add(job)
        return job

    return submit_job


@pytest.mark.parametrize("connections", [9, 40])
def test_short_job_waits_less_than_100_ms_behind_any_number_of_long_jobs(
    burner: CpuBurner, submit: Callable[..., Job], connections: int
) -> None:
    long = [submit(2.0) for _ in range(connections)]
    eventually(lambda: burner.burnt > 0.1)

    waits = []
    known = Account()
    for account in (known, Account(), known, Account()):
        before = burner.burnt
        submit(0.005, account).future.result(SECONDS)
        waits.append(burner.burnt - before)

    assert not any(job.future.done() for job in long)
    assert max(waits) < 0.1


def test_lightly_served_client_runs_before_forty_new_connections(burner: CpuBurner, submit: Callable[..., Job]) -> None:
    known = Account()
    submit(0.005, known).future.result(SECONDS)
    new = [submit(2.0) for _ in range(40)]
    before = burner.burnt

    submit(0.005, known).future.result(SECONDS)

    assert burner.burnt - before < 0.1
    assert not any(job.future.done() for job in new)


def test_a_stream_of_short_jobs_does_not_starve_a_long_job(burner: CpuBurner, submit: Callable[..., Job]) -> None:
    long = submit(0.5)
    short = Account()
    streams = [submit(0.005, short) for _ in range(4)]
    while not long.future.done():
        assert burner.burnt < 20
        streams.append(submit(0.005, short))
        streams.pop(0).future.result(SECONDS)

    # The job gets at least a fifth of the time and is started at most three times.
    assert burner.burnt < (0.5 + 0.33 + 0.1) * 6
    assert burner.starts.count(long) <= 3


def test_only_one_job_with_a_large_record_is_validated_at_a_time(burner: CpuBurner, submit: Callable[..., Job]) -> None:
    large = [submit(0.05, held_bytes=16 * MOST_HELD_BYTES) for _ in range(20)]
    small = [submit(0.05, held_bytes=MOST_HELD_BYTES) for _ in range(20)]

    wait([job.future for job in large + small], timeout=SECONDS)

    assert burner.most_large_at_once == 1
    assert len(burner.done) == 40


def test_job_starts_at_the_level_where_the_last_job_of_its_connection_ended(
    burner: CpuBurner, submit: Callable[..., Job]
) -> None:
    account = Account()
    first = submit(0.1, account)
    first.future.result(SECONDS)
    eventually(lambda: account.last_seconds > 0.09)
    second = submit(0.1, account)
    second.future.result(SECONDS)

    assert (burner.starts.count(first), burner.starts.count(second)) == (2, 1)


def test_abandoned_jobs_end_on_every_level(
    burner: CpuBurner, submit: Callable[..., Job], thread: ValidationThread
) -> None:
    started = [submit(1000.0) for _ in range(3)]
    eventually(lambda: burner.burnt > 0.5)

    for job in started:
        thread.abandon(job)

    eventually(lambda: all(job.future.cancelled() for job in started))
    submit(0.001).future.result(SECONDS)
