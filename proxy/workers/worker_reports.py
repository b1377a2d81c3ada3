"""Combines all workers' reports into one proxy's: counters, the status, and the state for the web UI.

After a worker has ended, its counters up to its last report stay in the sums.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from time import process_time
from typing import TYPE_CHECKING

from sluicegate.proxy.reporting.logs.setup import log_lines_dropped
from sluicegate.proxy.reporting.metrics.counters import Counters, Snapshot, total_gauges, total_of
from sluicegate.proxy.reporting.metrics.topic_labels import with_few_topics
from sluicegate.proxy.server.process_resources import resident_bytes
from sluicegate.proxy.status.condition import Condition, ServingState
from sluicegate.proxy.status.status import ActiveCondition, Status, gauges_of, not_refuted, of_workers, state_of
from sluicegate.proxy.workers.messages import Command, Report, WorkerSnapshot
from sluicegate.proxy.workers.worker_process import WorkerProcess, Workers
from sluicegate.proxy.workers.worker_snapshots import WorkerSnapshots

if TYPE_CHECKING:
    from sluicegate.proxy.live.live_snapshot import LiveQuery
    from sluicegate.proxy.live.live_state import LiveState

_FRESH_SECONDS = 2.0
# The number of missing reports after which a worker counts as silent. Reports are requested every second. A supervisor
# that is itself stopped requests none.
_SILENT_REPORTS = 5
_STUCK_REPORTS = 10


class WorkerReports:
    """Reads the workers' reports.

    It belongs to the supervisor's event loop. Other threads call `snapshot` and `live_state`.
    """

    def __init__(self, workers: Workers, status: Status, counters: Counters) -> None:
        """`status` and `counters` are the supervisor's."""
        self._workers = workers
        self._status = status
        self._counters = counters
        self._of_the_ended: list[Counters] = []
        self._restarts = 0
        self._snapshots = WorkerSnapshots(_FRESH_SECONDS)
        self._loop = asyncio.get_running_loop()

    def request(self) -> None:
        """Request a report from each worker, except from those that have not responded to earlier requests."""
        for worker in self._workers:
            if not worker.outbox.is_behind:
                worker.outbox.send(Command.REPORT)

    def request_regularly(self) -> None:
        """Request a report from each worker once a second, and count the reports that a worker has not sent."""
        for worker in self._workers:
            if worker.takes_connections:
                worker.unanswered += 1
        self.request()

    def received(self, worker: WorkerProcess, message: Report | WorkerSnapshot) -> None:
        """Store a worker's message."""
        if isinstance(message, Report):
            worker.report = message
        else:
            self._snapshots.received(worker.index, message)

    def ended(self, worker: WorkerProcess) -> None:
        """Keep the counters of a worker that has ended."""
        self._snapshots.ended(worker.index)
        if worker.report is not None:
            self._of_the_ended.append(_without_open_connections(worker.report.snapshot.counters))
            self._of_the_ended = [with_few_topics(total_of(self._of_the_ended))]

    def restarted(self, worker: WorkerProcess, detail: str) -> None:
        """Count a worker's restart, and show the reason."""
        self._restarts += 1
        self._status.begin(Condition.WORKER_RESTARTED, detail, f"worker {worker.index}")

    def update_status(self) -> None:
        """Update the proxy's status.

        The proxy is ready while any worker is. It is not alive only when all workers are stuck, because a restart would
        also end those that serve. The conditions of a silent worker are no longer assumed to be true.
        """
        now = time.monotonic()
        started = [worker for worker in self._workers if worker.takes_connections]
        silent = {worker.index for worker in started if _is_silent(worker)}
        reports = {
            worker.index: worker.report
            for worker in self._workers
            if worker.report is not None and worker.index not in silent
        }
        conditions = []
        for index, report in reports.items():
            others = [each.successes for each in reports.values() if each is not report]
            conditions.append((index, not_refuted(report.conditions, others, now)))
        self._status.adopt(of_workers(conditions))
        if reports:
            self._status.end(Condition.STARTING)
        self._status.set_all(
            Condition.WORKER_UNRESPONSIVE,
            {f"worker {worker.index}": _silence_of(worker) for worker in started if worker.index in silent},
        )
        are_stuck = started and all(worker.unanswered > _STUCK_REPORTS for worker in started)
        stuck = f"no worker has reported for {_STUCK_REPORTS} s" if are_stuck else None
        self._status.set(Condition.EVENT_LOOP_STUCK, stuck)

    def snapshot(self) -> Snapshot:
        """Return every worker's current counters, for a scrape."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._request_fresh(), self._loop).result(_FRESH_SECONDS)
        workers = list(self._workers)
        reports = [worker.report for worker in workers if worker.report is not None]
        own = replace(self._counters, log_lines_dropped=log_lines_dropped(), cpu_seconds=process_time())
        gauges = total_gauges(report.snapshot for report in reports)
        gauges.resident_bytes += resident_bytes()
        counters = total_of([own, *self._of_the_ended, *(report.snapshot.counters for report in reports)])
        active = self._status.active()
        counters.ready = state_of(active) is not ServingState.NOT_SERVING
        return Snapshot(
            counters,
            sum(report.snapshot.in_flight for report in reports),
            sum(worker.takes_connections for worker in workers),
            self._restarts,
            1 + min((worker.adopted for worker in workers), default=0),
            gauges,
            gauges_of(active),
            next((offset for offset in _clock_offsets(reports) if offset is not None), None),
            {topic: owner for report in reports for topic, owner in report.snapshot.topic_owners.items()},
            {client: owner for report in reports for client, owner in report.snapshot.client_owners.items()},
        )

    async def _request_fresh(self) -> None:
        """Request reports and wait for them.

        Silent workers are not awaited, because frequent scrapes would queue up.
        """
        asked_at = time.monotonic()
        self.request()

        def is_fresh(worker: WorkerProcess) -> bool:
            return not worker.takes_connections or worker.last_message_at >= asked_at or _is_silent(worker)

        await self._workers.wait_until_all(is_fresh, _FRESH_SECONDS / 2)

    def live_state(self, query: "LiveQuery") -> "LiveState":
        """Return every worker's current state, for the web UI. Raises NoStateAvailable."""
        from sluicegate.proxy.live.conditions import status_state  # noqa: PLC0415  # only the web UI needs them
        from sluicegate.proxy.live.merged_state import merged_state  # noqa: PLC0415  # only the web UI needs them
        from sluicegate.proxy.webui.site import NoStateAvailable  # noqa: PLC0415  # only the web UI needs them

        future = asyncio.run_coroutine_threadsafe(self._worker_states(query), self._loop)
        try:
            states, missing = future.result(2 * _FRESH_SECONDS)
        except TimeoutError:
            future.cancel()
            raise NoStateAvailable("the supervisor did not collect the workers' states in time") from None
        if not states:
            raise NoStateAvailable("no worker has responded yet")
        active = self._status.active()
        silent = {each.subject for each in active if each.condition is Condition.WORKER_UNRESPONSIVE}
        active += [each for each in missing if each.subject not in silent]
        return {**merged_state(states), **status_state(active)}

    async def _worker_states(self, query: "LiveQuery") -> "tuple[list[LiveState], list[ActiveCondition]]":
        return await self._snapshots.ask(list(self._workers), query)


def _is_silent(worker: WorkerProcess) -> bool:
    return worker.unanswered > _SILENT_REPORTS


def _silence_of(worker: WorkerProcess) -> str:
    return (
        f"worker {worker.index} (process {worker.process.pid}) has not reported for more than {_SILENT_REPORTS} s: "
        "its clients may wait, and its figures are missing or old"
    )


def _clock_offsets(reports: Iterable[Report]) -> Iterator[float | None]:
    return (report.snapshot.clock_offset_seconds for report in reports)


def _without_open_connections(counters: Counters) -> Counters:
    """Return the counters of a worker that has ended, and whose connections are therefore all closed."""
    counters.connections_closed = counters.connections_opened
    counters.ready = False
    return counters
