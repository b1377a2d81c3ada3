"""Runs several workers as one proxy, with shared ports, one admin endpoint, and one drain for all.

A worker that ends unexpectedly is restarted.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

import structlog

from sluicegate.config.files.source import Problem, Source
from sluicegate.config.loading import ConfigError, Loaded
from sluicegate.config.model import POLICIES, Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.cluster.topics import SettingsRead, read_settings_now
from sluicegate.proxy.network.inherited_sockets import NOTHING_INHERITED, InheritedSockets
from sluicegate.proxy.network.listeners import CannotListen, reserve_shared
from sluicegate.proxy.reload.config_check import check_policies
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.reporting.build_info import SCAN_IS_COMPILED, VERSION
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.server.housekeeping import report_failing
from sluicegate.proxy.server.settings_store import SettingsStore
from sluicegate.proxy.server.startup import CannotStart, check_telemetry, metric_push, open_state
from sluicegate.proxy.session.opening.loop_detection import new_mark
from sluicegate.proxy.state.settings_table import TopicValues
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.workers.messages import (
    Adopt,
    Adopted,
    AdoptSettings,
    ChangeSettings,
    Command,
    Compile,
    CouldNotStart,
    Inbox,
    Message,
    Outbox,
    PoliciesCompiled,
    Report,
    SettingsAdopted,
    SettingsChanged,
    Suspend,
    Suspended,
    WorkerSnapshot,
    WorkerStarted,
)
from sluicegate.proxy.workers.worker import run_worker
from sluicegate.proxy.workers.worker_process import WorkerLauncher, WorkerProcess, Workers, choose_socket_folder
from sluicegate.proxy.workers.worker_reports import WorkerReports
from sluicegate.validation.origins import NOWHERE
from sluicegate.validation.rulebook import SuspendedTopics

if TYPE_CHECKING:
    from sluicegate.proxy.admin.changes import Reload
    from sluicegate.proxy.admin.endpoint import AdminServer
    from sluicegate.proxy.telemetry.metric_push import MetricPush


_PRELOADED = "sluicegate.proxy.workers.preloaded"
_REPORT_SECONDS = 1.0
# A worker that ends within this time after its start is restarted after a delay.
_SHORT_LIFE_SECONDS = 5.0
_BEYOND_DRAIN_SECONDS = 5.0
# Workers may take this long to compile new policies, and as long again to put them in force.
_RELOAD_STEP_SECONDS = 30.0
_SUSPEND_SECONDS = 2.0


class Supervisor:
    """One proxy, which can be started and drained like `sluicegate.proxy.server.server.Server`.

    It has processes instead of sessions.
    """

    def __init__(
        self, config: Config, policy_query: PolicyQuery | None = None, inherited: InheritedSockets = NOTHING_INHERITED
    ) -> None:
        """`policy_query` explains the policies in force. `inherited` contains sockets that the workers share."""
        self._query = policy_query or PolicyQuery(Loaded(config, NOWHERE, (), ()))
        self._query.read_settings = self._read_settings
        self._query.suspended = lambda: self._enforcement.in_force
        self._places = self._query.loaded.source.only_places(POLICIES)
        self._inherited = inherited
        self._config = config
        self._log = structlog.get_logger("sluicegate")
        self._workshop = multiprocessing.get_context("forkserver")
        self._workshop.set_forkserver_preload([_PRELOADED])
        self._workers = Workers()
        self._adoptions = 0
        self._draining = False
        self._admin: AdminServer | None = None
        self._metric_push: MetricPush | None = None
        self.status = Status()
        self.reload: Reload | None = None
        self._enforcement = Enforcement(self.status, self._suspend, all_in_force=self._all_suspended)
        self._suspensions = 0
        self._settings: dict[str, TopicValues] = {}
        self._settings_number = 0
        self._changing: set[asyncio.Task[None]] = set()
        self._store = SettingsStore()
        self._are_settings_read = False
        self.counters = Counters()
        self._reports = WorkerReports(self._workers, self.status, self.counters)
        self._pushes = WriteHealth()
        self._tasks: list[asyncio.Task[None]] = []
        self._loop = asyncio.get_running_loop()
        self._cannot_start: str | None = None
        self._for_workers = config
        self._mark = new_mark()
        self._launcher = WorkerLauncher()

    async def start(self) -> None:
        """Start every worker and wait until each accepts connections. Raises CannotStart."""
        shared = self._config.listen.bootstrap
        check_telemetry(self._config)
        choose_socket_folder()
        try:
            self._reserved = self._inherited.at(shared) or reserve_shared(shared)
            self._store.shared = open_state(
                self._config,
                self._enforcement,
                self.adopt_settings,
                self._settings_read,
                self._query,
                self.status,
                self._pushes,
                self._reports.snapshot,
            )
            if self._config.admin.listen is not None:
                from sluicegate.proxy.admin.opening import open_admin  # noqa: PLC0415  # workers have none

                self._admin = open_admin(
                    self._config,
                    self._reports.snapshot,
                    self.status,
                    self._reports.live_state,
                    self._query,
                    self._enforcement,
                    self._store.shared,
                    self.reload,
                )
        except CannotListen as error:
            raise CannotStart(f"cannot listen on {error}; {error.advice}") from error
        bootstrap = HostPort(shared.host, self._reserved.getsockname()[1])
        self._for_workers = self._config.of_one_worker(bootstrap)
        for index in range(1, self._config.workers + 1):
            self._start_worker(index)
        while not all(worker.takes_connections for worker in self._workers):
            await self._workers.next_change()
            if self._cannot_start is not None:
                await self._end_all()
                raise CannotStart(self._cannot_start)
        self._tasks = [self._loop.create_task(self._keep_reporting())]
        self._metric_push = metric_push(self._config, self._reports.snapshot, self.counters, self._pushes)
        self._log.info(
            "started",
            version=VERSION,
            scan="compiled" if SCAN_IS_COMPILED else "interpreted",
            bootstrap=str(bootstrap),
            upstream=[str(address) for address in self._config.upstream.bootstrap],
            workers=self._config.workers,
        )

    def check(self, loaded: Loaded) -> None:
        """Check another configuration's policies.

        Blocks, which is allowed because this process serves no client. Raises ConfigError.
        """
        check_policies(loaded)

    async def adopt(self, config: Config, source: Source = NOWHERE) -> None:
        """Put another configuration's policies in force in all workers, or in none if one cannot compile them.

        Workers that are restarted later start with the new policies. Raises ConfigError.
        """
        changed, places = self._for_workers.with_policies_of(config), source.only_places(POLICIES)
        number = self._adoptions + 1
        compiling = list(self._workers)
        for worker in compiling:
            worker.compiled, worker.problem = 0, None
            worker.outbox.send(Compile(changed, number, places))
        await self._workers.wait_until_all(
            lambda worker: worker not in compiling or worker.compiled >= number, _RELOAD_STEP_SECONDS
        )
        problems = [f"worker {each.index}: {each.problem}" for each in self._workers if each.problem]
        if problems:
            raise ConfigError([Problem("", "policies", problem) for problem in problems])
        self._for_workers, self._places, self._adoptions = changed, places, number
        for worker in self._workers:
            if worker not in compiling:  # the worker was restarted meanwhile, with the previous policies
                worker.outbox.send(Compile(changed, number, places))
            worker.outbox.send(Adopt(number))
        await self._workers.wait_until_all(lambda worker: worker.adopted >= number, _RELOAD_STEP_SECONDS)
        late = [worker.index for worker in self._workers if worker.adopted < number]
        if late:
            self._log.error("workers still use the previous policies", workers=late, seconds=2 * _RELOAD_STEP_SECONDS)

    def _read_settings(self, topic: str) -> SettingsRead:
        """Return a topic's settings that the workers apply. Blocks."""
        read, its = read_settings_now(self._config.upstream, topic), self._settings.get(topic)
        return read if its is None else replace(read, shared=its.values)

    async def adopt_settings(self, changes: Mapping[str, TopicValues | None]) -> None:
        """Put changed topic settings in force in all workers. Log an error if a worker does not respond."""
        for topic, its in changes.items():
            if its is None:
                self._settings.pop(topic, None)
            else:
                self._settings[topic] = its
        self._settings_number = number = self._settings_number + 1
        asked = [worker for worker in self._workers if worker.takes_connections]
        self._workers.send(AdoptSettings(dict(changes), number))
        await self._workers.wait_until_all(
            lambda worker: worker not in asked or worker.settings >= number, _RELOAD_STEP_SECONDS
        )
        late = [worker.index for worker in self._workers if worker in asked and worker.settings < number]
        if late:
            self._log.error("workers still use the previous topic settings", workers=late)

    async def _change_settings(self, worker: WorkerProcess, message: ChangeSettings) -> None:
        """Store changes of topic settings for a worker, and respond when they are in force in all workers."""
        failed = await self._store.stored(message.changes, message.requester)
        worker.outbox.send(SettingsChanged(failed, message.number))

    def _settings_read(self) -> None:
        self._are_settings_read = True
        self._workers.send(Command.SETTINGS_READ)

    def _suspend(self, suspended: SuspendedTopics) -> None:
        self._suspensions += 1
        self._workers.send(Suspend(suspended, self._suspensions))

    async def _all_suspended(self) -> None:
        """Wait until the last suspensions are in force in all workers. Raises TimeoutError."""
        number = self._suspensions
        await self._workers.wait_until_all(lambda worker: worker.suspended >= number, _SUSPEND_SECONDS)
        if any(worker.suspended < number for worker in self._workers):
            raise TimeoutError

    async def drain(self) -> None:
        """Drain every worker, and wait for the workers to end, a little longer than a drain may take."""
        self._draining = True
        self.status.begin(Condition.DRAINING, "draining")
        for task in self._tasks:
            task.cancel()
        self._workers.send(Command.DRAIN)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.drain_timeout_seconds + _BEYOND_DRAIN_SECONDS):
                while self._workers:
                    await self._workers.next_change()
        await self._end_all()
        self._log.info("stopped", workers=self._config.workers)

    def _start_worker(self, index: int) -> None:
        here, there = multiprocessing.Pipe()
        source = self._places.only_places(POLICIES)  # with the files' current content
        process = self._workshop.Process(
            target=run_worker,
            args=(
                index,
                self._for_workers,
                self._mark,
                there,
                self._inherited.sockets,
                source,
                tuple(self._settings.items()),
            ),
            name=f"sluicegate-worker-{index}",
        )
        process.start()
        there.close()
        now = time.monotonic()
        outbox = Outbox(here, f"outbox-of-worker-{index}")
        outbox.send(Suspend(self._enforcement.in_force, self._suspensions))
        if self._are_settings_read:
            outbox.send(Command.SETTINGS_READ)
        worker = WorkerProcess(index, process, here, outbox, now, now, adopted=self._adoptions)
        self._workers.add(worker)
        on_message, ended = partial(self._on_message, worker), partial(self._ended, worker)
        worker.inbox = Inbox(here, f"inbox-of-worker-{index}", self._loop.call_soon_threadsafe, on_message, ended)

    def _on_message(self, worker: WorkerProcess, message: Message) -> None:
        worker.last_message_at, worker.unanswered = time.monotonic(), 0
        match message:
            case WorkerStarted():
                worker.takes_connections = True
            case PoliciesCompiled(number, problem):
                worker.compiled, worker.problem = number, problem
            case Adopted(number):
                worker.adopted = number
            case Suspended(number):
                worker.suspended = number
            case SettingsAdopted(number):
                worker.settings = number
            case ChangeSettings():
                task = self._loop.create_task(self._change_settings(worker, message))
                self._changing.add(task)
                task.add_done_callback(self._changing.discard)
            case CouldNotStart(reason) if not self._tasks:
                self._cannot_start = reason
            case CouldNotStart(reason):  # the restart of the worker is retried
                self._log.error("worker restart failed", worker=worker.index, reason=reason)
            case Report() | WorkerSnapshot():
                self._reports.received(worker, message)
            case _:
                assert_never(message)
        self._reports.update_status()
        self._workers.notify()

    def _ended(self, worker: WorkerProcess) -> None:
        if worker not in self._workers:  # all workers are being ended
            return
        worker.close()
        worker.process.join(_BEYOND_DRAIN_SECONDS)
        self._workers.remove(worker)
        self._reports.ended(worker)
        self._workers.notify()
        if self._draining or self._cannot_start is not None:
            return
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
        self._reports.restarted(worker, detail)
        self._loop.call_later(wait, self._start_again, worker.index)

    def _start_again(self, index: int) -> None:
        if not self._draining:
            self._start_worker(index)

    async def _end_all(self) -> None:
        for worker in self._workers:
            worker.process.kill()
            await asyncio.to_thread(worker.process.join)
            await asyncio.to_thread(worker.close)
        self._workers.clear()
        self._reserved.close()
        if self._store.shared is not None:
            await asyncio.to_thread(self._store.shared.close)
        if self._metric_push is not None:
            await asyncio.to_thread(self._metric_push.close)
        if self._admin is not None:
            await asyncio.to_thread(self._admin.close)

    async def _keep_reporting(self) -> None:
        while True:
            self.status.beat()
            self._enforcement.end_due()
            report_failing(self.status, Condition.EVENTS_LOST, self._pushes)
            self._launcher.restart_if_ended()
            self._reports.request_regularly()
            self._reports.update_status()
            await asyncio.sleep(_REPORT_SECONDS)
