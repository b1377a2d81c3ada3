"""Runs several workers as one proxy: shared ports, one admin endpoint, counters summed, one drain for all.

A worker that ends unexpectedly is restarted and counted. Its counters up to its last report stay in the sums.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import process_time
from typing import TYPE_CHECKING

import structlog

from sluicegate.config.loading import ConfigError, Loaded
from sluicegate.config.model import Config
from sluicegate.config.source import Problem
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.inherited_sockets import NOTHING_INHERITED, InheritedSockets
from sluicegate.proxy.network.listeners import CannotListen, reserve_shared
from sluicegate.proxy.reload.config_check import check_policies
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.reporting.build_info import SCAN_IS_COMPILED, VERSION
from sluicegate.proxy.reporting.logs.setup import log_lines_dropped
from sluicegate.proxy.reporting.metrics.counters import Counters, Snapshot, total_gauges, total_of
from sluicegate.proxy.reporting.metrics.topic_labels import with_few_topics
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.server.housekeeping import report_failing
from sluicegate.proxy.server.process_resources import resident_bytes
from sluicegate.proxy.server.startup import CannotStart, check_telemetry, metric_push
from sluicegate.proxy.session.opening.loop_detection import new_mark
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import ActiveCondition, Status, of_workers
from sluicegate.proxy.workers.messages import (
    Adopt,
    Adopted,
    Command,
    Compile,
    Compiled,
    CouldNotStart,
    Inbox,
    Message,
    Outbox,
    Report,
    Started,
    Suspend,
    WorkerSnapshot,
)
from sluicegate.proxy.workers.worker import run_worker
from sluicegate.proxy.workers.worker_process import WorkerProcess, choose_socket_folder
from sluicegate.proxy.workers.worker_snapshots import WorkerSnapshots
from sluicegate.validation.rulebook import Suspended

if TYPE_CHECKING:
    from sluicegate.proxy.admin.endpoint import AdminServer
    from sluicegate.proxy.live.live_snapshot import LiveQuery
    from sluicegate.proxy.live.live_state import LiveState
    from sluicegate.proxy.telemetry.metric_push import MetricPush


_PRELOADED = "sluicegate.proxy.workers.preloaded"
_REPORT_SECONDS = 1.0
_FRESH_SECONDS = 2.0
_SILENT_SECONDS = 10.0
# A worker that ends sooner than this is restarted after a delay.
_SHORT_LIFE_SECONDS = 5.0
_BEYOND_DRAIN_SECONDS = 5.0
# How long workers may take to compile new policies, and again to put them in force.
_RELOAD_STEP_SECONDS = 30.0


class Supervisor:
    """Start it, wait, drain it; as `sluicegate.proxy.server.server.Server`, but with processes instead of sessions."""

    def __init__(
        self, config: Config, policy_query: PolicyQuery | None = None, inherited: InheritedSockets = NOTHING_INHERITED
    ) -> None:
        """`policy_query` explains the policies in force; `inherited` are sockets that its workers share."""
        self._policy_query = policy_query
        self._inherited = inherited
        self._worker_snapshots = WorkerSnapshots(_FRESH_SECONDS)
        self._config = config
        self._log = structlog.get_logger("sluicegate")
        self._workshop = multiprocessing.get_context("forkserver")
        self._workshop.set_forkserver_preload([_PRELOADED])
        self._workers: dict[int, WorkerProcess] = {}
        self._of_the_ended: list[Counters] = []
        self._restarts = 0
        self._adoptions = 0
        self._draining = False
        self._admin: AdminServer | None = None
        self._metric_push: MetricPush | None = None
        self.status = Status()
        self._enforcement = Enforcement(self.status, self._suspend)
        self.counters = Counters()
        self._reports = WriteHealth()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._loop = asyncio.get_running_loop()
        self._cannot_start: str | None = None
        self._for_workers = config
        self._mark = new_mark()

    async def start(self) -> None:
        """Start every worker and wait until each takes connections. Raises CannotStart."""
        shared = self._config.listen.bootstrap
        check_telemetry(self._config)
        choose_socket_folder()
        try:
            self._reserved = self._inherited.at(shared) or reserve_shared(shared)
            if self._config.admin.listen is not None:
                from sluicegate.proxy.admin.endpoint import serve  # noqa: PLC0415  # workers have none
                from sluicegate.proxy.admin.enforcement_api import EnforcementApi  # noqa: PLC0415

                listen, query = self._config.admin.listen, self._policy_query
                changes = EnforcementApi(self._enforcement, self._loop)
                self._admin = serve(self._config, listen, self._snapshot, self.status, self._live_state, query, changes)
        except CannotListen as error:
            raise CannotStart(f"cannot listen on {error}; {error.advice}") from error
        bootstrap = HostPort(shared.host, self._reserved.getsockname()[1])
        self._for_workers = self._config.of_one_worker(bootstrap)
        for index in range(1, self._config.workers + 1):
            self._start_worker(index)
        while not all(worker.takes_connections for worker in self._workers.values()):
            await self._next_change()
            if self._cannot_start is not None:
                await self._end_all()
                raise CannotStart(self._cannot_start)
        self._tasks = [self._loop.create_task(self._keep_reporting())]
        self._metric_push = metric_push(self._config, self._snapshot, self.counters, self._reports)
        self._log.info(
            "started",
            version=VERSION,
            scan="compiled" if SCAN_IS_COMPILED else "interpreted",
            bootstrap=str(bootstrap),
            upstream=[str(address) for address in self._config.upstream.bootstrap],
            workers=self._config.workers,
        )

    def check(self, loaded: Loaded) -> None:
        """Check another configuration's policies; this process serves no client. Blocks. Raises ConfigError."""
        check_policies(loaded)

    async def adopt(self, config: Config) -> None:
        """Put another configuration's policies in force in every worker, or in none if one cannot compile them.

        Workers that are restarted later start with them. Raises ConfigError.
        """
        changed = self._for_workers.with_policies_of(config)
        number = self._adoptions + 1
        compiling = list(self._workers.values())
        for worker in compiling:
            worker.compiled, worker.problem = 0, None
            worker.outbox.send(Compile(changed, number))
        await self._until_workers(lambda worker: worker not in compiling or worker.compiled >= number)
        problems = [f"worker {each.index}: {each.problem}" for each in self._workers.values() if each.problem]
        if problems:
            raise ConfigError([Problem("", "policies", problem) for problem in problems])
        self._for_workers, self._adoptions = changed, number
        for worker in self._workers.values():
            if worker not in compiling:  # it was restarted meanwhile, with the policies of before
                worker.outbox.send(Compile(changed, number))
            worker.outbox.send(Adopt(number))
        await self._until_workers(lambda worker: worker.adopted >= number)
        late = [worker.index for worker in self._workers.values() if worker.adopted < number]
        if late:
            self._log.error("workers still use the previous policies", workers=late, seconds=2 * _RELOAD_STEP_SECONDS)

    def _suspend(self, suspended: Suspended) -> None:
        for worker in self._workers.values():
            worker.outbox.send(Suspend(suspended))

    async def _until_workers(self, done: Callable[[WorkerProcess], bool]) -> None:
        """Wait until `done` is true of all workers, for a limited time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_RELOAD_STEP_SECONDS):
                while not all(map(done, self._workers.values())):
                    await self._next_change()

    async def drain(self) -> None:
        """Drain every worker, and wait for their end a little longer than a drain may take."""
        self._draining = True
        self.status.begin(Condition.DRAINING, "draining")
        for task in self._tasks:
            task.cancel()
        self._send_all(Command.DRAIN)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.drain_timeout_seconds + _BEYOND_DRAIN_SECONDS):
                while self._workers:
                    await self._next_change()
        await self._end_all()
        self._log.info("stopped", workers=self._config.workers)

    # -- processes -----------------------------------------------------------------------------------------------

    def _start_worker(self, index: int) -> None:
        here, there = multiprocessing.Pipe()
        process = self._workshop.Process(
            target=run_worker,
            args=(index, self._for_workers, self._mark, there, self._inherited.sockets),
            name=f"sluicegate-worker-{index}",
        )
        process.start()
        there.close()
        now = time.monotonic()
        outbox = Outbox(here, f"outbox-of-worker-{index}")
        outbox.send(Suspend(self._enforcement.in_force))
        worker = self._workers[index] = WorkerProcess(index, process, here, outbox, now, now, adopted=self._adoptions)
        on_message, ended = partial(self._on_message, worker), partial(self._ended, worker)
        worker.inbox = Inbox(here, f"inbox-of-worker-{index}", self._loop.call_soon_threadsafe, on_message, ended)

    def _on_message(self, worker: WorkerProcess, message: Message) -> None:
        worker.last_message_at = time.monotonic()
        match message:
            case Started():
                worker.takes_connections = True
            case Compiled(number, problem):
                worker.compiled, worker.problem = number, problem
            case Adopted(number):
                worker.adopted = number
            case CouldNotStart(reason) if not self._tasks:
                self._cannot_start = reason
            case CouldNotStart(reason):  # a restarted worker; the restart is tried again
                self._log.error("worker restart failed", worker=worker.index, reason=reason)
            case Report():
                worker.report = message
            case WorkerSnapshot():
                self._worker_snapshots.received(worker.index, message)
        self._report_status()
        self._changed.set()

    def _ended(self, worker: WorkerProcess) -> None:
        if self._workers.get(worker.index) is not worker:  # all are being ended
            return
        worker.close()
        worker.process.join(_BEYOND_DRAIN_SECONDS)
        del self._workers[worker.index]
        self._worker_snapshots.ended(worker.index)
        if worker.report is not None:
            self._of_the_ended.append(_without_open_connections(worker.report.snapshot.counters))
            self._of_the_ended = [with_few_topics(total_of(self._of_the_ended))]
        self._changed.set()
        if self._draining or self._cannot_start is not None:
            return
        self._restarts += 1
        lived = time.monotonic() - worker.started_at
        wait = 0.0 if lived >= _SHORT_LIFE_SECONDS else 1.0
        self._log.error(
            "worker ended, restarting",
            worker=worker.index,
            exit_code=worker.process.exitcode,
            lived_seconds=round(lived, 1),
            again_in_seconds=wait,
        )
        detail = f"worker {worker.index} ended with exit code {worker.process.exitcode} and is restarted"
        self.status.begin(Condition.WORKER_RESTARTED, detail, f"worker {worker.index}")
        self._loop.call_later(wait, self._start_again, worker.index)

    def _start_again(self, index: int) -> None:
        if not self._draining:
            self._start_worker(index)

    async def _end_all(self) -> None:
        for worker in list(self._workers.values()):
            worker.process.kill()
            await asyncio.to_thread(worker.process.join)
            await asyncio.to_thread(worker.close)
        self._workers.clear()
        self._reserved.close()
        if self._metric_push is not None:
            await asyncio.to_thread(self._metric_push.close)
        if self._admin is not None:
            await asyncio.to_thread(self._admin.close)

    # -- reports -------------------------------------------------------------------------------------------------

    async def _keep_reporting(self) -> None:
        while True:
            self.status.beat()
            self._enforcement.end_due()
            report_failing(self.status, Condition.EVENTS_LOST, self._reports)
            self._send_all(Command.REPORT)
            self._report_status()
            await asyncio.sleep(_REPORT_SECONDS)

    def _send_all(self, command: Command) -> None:
        for worker in self._workers.values():
            if command is not Command.REPORT or not worker.outbox.is_behind:  # it will report when it has caught up
                worker.outbox.send(command)

    def _report_status(self) -> None:
        """Ready while any worker is; not alive when one is stuck."""
        now = time.monotonic()
        reports = [(w.index, w.report.conditions) for w in self._workers.values() if w.report is not None]
        if reports:
            self.status.end(Condition.STARTING)
        self.status.adopt(of_workers(reports))
        silent = [
            w for w in self._workers.values() if w.takes_connections and now - w.last_message_at > _SILENT_SECONDS
        ]
        stuck = f"worker {silent[0].index} has not reported for {_SILENT_SECONDS:.0f} s" if silent else None
        self.status.set(Condition.EVENT_LOOP_STUCK, stuck)

    def _snapshot(self) -> Snapshot:
        """For a scrape, from the admin's thread: every worker's counters as they are now."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._fresh_reports(), self._loop).result(_FRESH_SECONDS)
        reports = [worker.report for worker in list(self._workers.values()) if worker.report is not None]
        own = replace(self.counters, log_lines_dropped=log_lines_dropped(), cpu_seconds=process_time())
        gauges = total_gauges(report.snapshot for report in reports)
        gauges.resident_bytes += resident_bytes()
        return Snapshot(
            total_of([own, *self._of_the_ended, *(report.snapshot.counters for report in reports)]),
            sum(report.snapshot.in_flight for report in reports),
            sum(worker.takes_connections for worker in list(self._workers.values())),
            self._restarts,
            1 + min((worker.adopted for worker in list(self._workers.values())), default=0),
            gauges,
            self.status.gauges(),
            next((offset for offset in _clock_offsets(reports) if offset is not None), None),
        )

    async def _fresh_reports(self) -> None:
        asked_at = time.monotonic()
        self._send_all(Command.REPORT)
        with suppress(TimeoutError):
            async with asyncio.timeout(_FRESH_SECONDS / 2):
                while any(w.takes_connections and w.last_message_at < asked_at for w in self._workers.values()):
                    await self._next_change()

    def _live_state(self, query: "LiveQuery") -> "LiveState":
        """For the page, from the admin's thread: what every worker sees now. Raises NoStateAvailable."""
        from sluicegate.proxy.live.conditions import status_state  # noqa: PLC0415
        from sluicegate.proxy.live.merged_state import merged_state  # noqa: PLC0415  # only who looks needs it
        from sluicegate.proxy.webui.site import NoStateAvailable  # noqa: PLC0415

        future = asyncio.run_coroutine_threadsafe(self._worker_states(query), self._loop)
        states, missing = future.result(2 * _FRESH_SECONDS)
        if not states:
            raise NoStateAvailable("no worker has responded yet")
        return {**merged_state(states), **status_state(self.status.active() + missing)}

    async def _worker_states(self, query: "LiveQuery") -> "tuple[list[LiveState], list[ActiveCondition]]":
        return await self._worker_snapshots.ask(list(self._workers.values()), query)

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def _clock_offsets(reports: Iterable[Report]) -> Iterator[float | None]:
    return (report.snapshot.clock_offset_seconds for report in reports)


def _without_open_connections(counters: Counters) -> Counters:
    """The counters of a worker that has ended: all its connections are closed."""
    counters.connections_closed = counters.connections_opened
    counters.ready = False
    return counters
