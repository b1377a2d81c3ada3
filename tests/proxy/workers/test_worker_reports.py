"""A silent worker is a condition. Only if all workers are silent, /livez requests a restart."""

import asyncio
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.status.condition import Condition, ServingState
from sluicegate.proxy.status.status import ActiveCondition, Status, state_of
from sluicegate.proxy.workers import worker_reports
from sluicegate.proxy.workers.messages import Report
from sluicegate.proxy.workers.worker_process import WorkerProcess, Workers
from sluicegate.proxy.workers.worker_reports import WorkerReports


class SupervisedWorkers:
    """A supervisor's status, and workers that have reported at some time."""

    def __init__(self) -> None:
        self.workers = Workers()
        self.status = Status()
        self.reports = WorkerReports(self.workers, self.status, Counters())

    def add(self, index: int, seconds_ago: int, *conditions: ActiveCondition) -> WorkerProcess:
        process: Any = SimpleNamespace(pid=100 + index)
        at = time.monotonic()
        worker = WorkerProcess(index, process, cast(Any, None), cast(Any, None), at, at, takes_connections=True)
        worker.unanswered = seconds_ago
        worker.report = Report(cast(Any, None), conditions, {})
        self.workers.add(worker)
        return worker

    @property
    def active(self) -> list[str]:
        self.reports.update_status()
        return [str(each) for each in self.status.active()]


@pytest.fixture
async def proxy() -> SupervisedWorkers:
    await asyncio.sleep(0)
    return SupervisedWorkers()


SILENT = (
    "worker_unresponsive: worker 2 (process 102) has not reported for more than 5 s: its clients may wait, and its "
    "figures are missing or old"
)


class WatchedStatus(Status):
    """A status that notes its state after each change, as a reader in another thread may see it."""

    def __init__(self) -> None:
        self.seen: list[ServingState] = []
        super().__init__()

    def end(self, condition: Condition, subject: str | None = None) -> None:
        super().end(condition, subject)
        self.seen.append(state_of(self.active()))

    def adopt(self, workers: Sequence[ActiveCondition]) -> None:
        super().adopt(workers)
        self.seen.append(state_of(self.active()))


async def test_a_proxy_whose_first_worker_cannot_serve_is_never_ready(proxy: SupervisedWorkers) -> None:
    proxy.status = status = WatchedStatus()
    proxy.reports = WorkerReports(proxy.workers, status, Counters())
    none_listed = ActiveCondition(Condition.NO_BROKER_LISTED, ServingState.NOT_SERVING, "kafka", "lists no broker", 1)
    proxy.add(1, 0, none_listed)

    assert proxy.active == ["no_broker_listed: lists no broker"]
    assert set(status.seen) == {ServingState.NOT_SERVING}


async def test_one_silent_worker_of_three_needs_attention_and_no_restart(proxy: SupervisedWorkers) -> None:
    for index, seconds_ago in ((1, 0), (2, 60), (3, 0)):
        proxy.add(index, seconds_ago)

    assert proxy.active == [SILENT]
    assert state_of(proxy.status.active()) is ServingState.NEEDS_ATTENTION
    assert proxy.status.not_live() is None
    assert proxy.status.not_ready() is None


async def test_silent_worker_condition_ends_when_the_worker_reports_again(proxy: SupervisedWorkers) -> None:
    worker = proxy.add(2, 6)
    proxy.add(1, 0)
    assert proxy.active == [SILENT]

    worker.unanswered = 0
    assert proxy.active == []


async def test_liveness_fails_if_all_workers_are_silent(proxy: SupervisedWorkers) -> None:
    for index in (1, 2):
        proxy.add(index, 11)

    assert "event_loop_stuck: no worker has reported for 10 s" in proxy.active
    assert proxy.status.not_live() == "no worker has reported for 10 s"


async def test_old_reports_of_a_silent_worker_are_not_shown(proxy: SupervisedWorkers) -> None:
    kind = Condition.BROKER_UNREACHABLE
    proxy.add(2, 6, ActiveCondition(kind, kind.type.state, "broker 1", "broker 1 at b:9092: refused", 1))
    proxy.add(1, 0)

    assert proxy.active == [SILENT]


async def test_a_scrape_does_not_wait_for_a_silent_worker(
    proxy: SupervisedWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise scrapes with a short interval would queue up, and all of them would be late."""
    monkeypatch.setattr(worker_reports, "_FRESH_SECONDS", 600.0)
    silent, other = proxy.add(2, 60), proxy.add(1, 0)

    def respond_now(_command: object) -> None:
        other.last_message_at = time.monotonic()

    for worker, send in ((silent, lambda _command: None), (other, respond_now)):
        worker.outbox = cast(Any, SimpleNamespace(is_behind=False, send=send))

    async with asyncio.timeout(60):
        await proxy.reports._request_fresh()
