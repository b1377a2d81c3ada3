"""Views from several workers are combined, and missing workers are named."""

import asyncio
from typing import cast

from sluicegate.proxy.live.live_snapshot import EVERYTHING
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import ActiveCondition
from sluicegate.proxy.workers.messages import SnapshotRequest, WorkerSnapshot
from sluicegate.proxy.workers.worker_snapshots import WorkerSnapshots

LATE = "the figures of worker 2 are missing here: it has not responded in time"


def states_and_details(found: tuple[list[LiveState], list[ActiveCondition]]) -> tuple[list[LiveState], list[str]]:
    states, missing = found
    assert {each.condition for each in missing} <= {Condition.WORKER_UNRESPONSIVE}
    return states, [each.detail for each in missing]


def state_of_version(by: str) -> LiveState:
    return cast(LiveState, {"version": by})


class ScriptedWorker:
    """A worker that responds to each request in a later loop iteration."""

    def __init__(self, look: WorkerSnapshots, index: int, takes_connections: bool = True) -> None:
        self.index = index
        self.takes_connections = takes_connections
        self.asked: list[SnapshotRequest] = []
        self._look = look

    @property
    def outbox(self) -> "ScriptedWorker":
        return self

    def send(self, request: SnapshotRequest, /) -> None:
        self.asked.append(request)
        asyncio.get_running_loop().call_soon(self._hears, request)

    def _hears(self, request: SnapshotRequest) -> None:
        self.send_snapshot(request)

    def send_snapshot(self, request: SnapshotRequest) -> None:
        self._look.received(self.index, WorkerSnapshot(state_of_version(f"worker {self.index}"), request.number))


class UnresponsiveWorker(ScriptedWorker):
    def _hears(self, request: SnapshotRequest) -> None:
        """Receive a request without a response."""


class EndingWorker(ScriptedWorker):
    def _hears(self, request: SnapshotRequest) -> None:
        self._look.ended(self.index)


async def test_snapshots_of_all_workers_are_collected() -> None:
    look = WorkerSnapshots(60)

    found = await look.ask([ScriptedWorker(look, 1), ScriptedWorker(look, 2)], EVERYTHING)

    assert found == ([state_of_version("worker 1"), state_of_version("worker 2")], [])


async def test_worker_that_times_out_is_reported_and_not_queried_again() -> None:
    look = WorkerSnapshots(0.05)
    quick, stuck = ScriptedWorker(look, 1), UnresponsiveWorker(look, 2)

    for _ in range(2):
        assert states_and_details(await look.ask([quick, stuck], EVERYTHING)) == (
            [state_of_version("worker 1")],
            [LATE],
        )

    assert (len(quick.asked), len(stuck.asked)) == (2, 1)


async def test_late_snapshot_is_dropped_and_its_worker_is_queried_again() -> None:
    look = WorkerSnapshots(0.05)
    late = UnresponsiveWorker(look, 2)
    assert states_and_details(await look.ask([late], EVERYTHING)) == ([], [LATE])

    late.send_snapshot(late.asked[0])
    assert states_and_details(await look.ask([late], EVERYTHING)) == ([], [LATE])

    assert [request.number for request in late.asked] == [1, 2]


async def test_ended_worker_is_not_awaited_and_starting_worker_is_reported() -> None:
    look = WorkerSnapshots(60)

    found = await look.ask(
        [ScriptedWorker(look, 1), EndingWorker(look, 2), ScriptedWorker(look, 3, takes_connections=False)], EVERYTHING
    )

    assert states_and_details(found) == (
        [state_of_version("worker 1")],
        [LATE, "the figures of worker 3 are missing here: it has not started yet"],
    )
