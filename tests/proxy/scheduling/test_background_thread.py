"""Background work runs one piece at a time, and short work does not wait for long work."""

import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest

from sluicegate.proxy.scheduling.background_thread import BackgroundJob, BackgroundThread, GiveWay
from sluicegate.proxy.scheduling.fair_sharing import Account

_SECONDS = 30


class Results:
    """The results in the order in which they were reported."""

    def __init__(self) -> None:
        self._reported: SimpleQueue[tuple[str, Any, BaseException | None]] = SimpleQueue()

    def job(self, name: str, work: Callable[[GiveWay], Any]) -> BackgroundJob:
        return BackgroundJob(work, Account(), partial(self._report, name))

    def _report(self, name: str, result: Any, error: BaseException | None) -> None:
        self._reported.put((name, result, error))

    def next_report(self) -> tuple[str, Any, BaseException | None]:
        return self._reported.get(timeout=_SECONDS)


def busy_for(seconds: float, give_way: GiveWay) -> str:
    """Use the processor for some time in small pieces."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        give_way()
    return "done"


def test_work_runs_in_another_thread_and_its_result_is_reported() -> None:
    thread, results = BackgroundThread(), Results()

    thread.add(results.job("a", lambda _: threading.current_thread()))

    name, where, error = results.next_report()
    assert (name, error) == ("a", None)
    assert where is not threading.current_thread()


def test_error_in_one_job_is_reported_and_later_jobs_still_run() -> None:
    thread, results = BackgroundThread(), Results()

    def fails(_: GiveWay) -> None:
        raise ValueError("no")

    thread.add(results.job("a", fails))
    thread.add(results.job("b", lambda _: 2))

    assert [str(each) for each in results.next_report()] == ["a", "None", "no"]
    assert results.next_report() == ("b", 2, None)


def test_short_job_does_not_wait_for_long_job() -> None:
    thread, results = BackgroundThread(), Results()
    is_long, may_end = threading.Event(), threading.Event()

    def long(give_way: GiveWay) -> str:
        busy_for(0.05, give_way)  # longer than short work may take
        is_long.set()
        while not may_end.is_set():
            give_way()
        return "long"

    thread.add(results.job("long", long))
    assert is_long.wait(_SECONDS)
    for number in range(5):
        thread.add(results.job(f"short {number}", lambda _: 1))
    shorts = [results.next_report()[0] for _ in range(5)]
    may_end.set()

    assert sorted(shorts) == [f"short {number}" for number in range(5)]
    assert results.next_report() == ("long", "long", None)


def test_only_one_long_job_runs_at_a_time() -> None:
    thread, results = BackgroundThread(), Results()
    running: list[str] = []

    def long(name: str, give_way: GiveWay) -> bool:
        busy_for(0.03, give_way)
        running.append(name)
        was_alone = len(running) == 1
        busy_for(0.03, give_way)
        running.remove(name)
        return was_alone

    for name in "abc":
        thread.add(results.job(name, partial(long, name)))

    assert [results.next_report()[1] for _ in range(3)] == [True] * 3


def test_job_of_account_with_less_recent_work_runs_first() -> None:
    thread, results = BackgroundThread(), Results()
    heavy, light, may_start = Account(), Account(), threading.Event()
    heavy.add(5.0, time.monotonic())
    light.add(0.1, time.monotonic())
    order: SimpleQueue[str] = SimpleQueue()

    thread.add(results.job("first", lambda _: may_start.wait(_SECONDS)))
    for name, account in (("heavy", heavy), ("light", light)):
        thread.add(BackgroundJob(lambda _, name=name: name, account, lambda result, _: order.put(result)))
    may_start.set()

    assert [order.get(timeout=_SECONDS) for _ in range(2)] == ["light", "heavy"]


@pytest.mark.parametrize("_round", range(20))
def test_job_added_while_the_thread_is_ending_still_runs(_round: int) -> None:
    thread, results = BackgroundThread(), Results()
    for number in range(50):
        thread.add(results.job(str(number), lambda _: None))
        results.next_report()  # the thread is about to end


def test_cpu_time_of_a_job_is_charged_to_its_account() -> None:
    thread, results = BackgroundThread(), Results()
    job = results.job("a", partial(busy_for, 0.01))

    thread.add(job)
    results.next_report()

    assert job.account.last_seconds >= 0.01
    assert not job.account.is_new
