"""A worker process: a server on shared ports that reports to its supervisor.

They exchange messages over one pipe. If the supervisor's end closes, the worker drains and ends.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import assert_never

import structlog
import uvloop

from sluicegate.config.disk.kept_files import adopt_contents
from sluicegate.config.files.source import Source
from sluicegate.config.model import Config
from sluicegate.proxy.network.inherited_sockets import InheritedSockets
from sluicegate.proxy.network.listeners import bind_shared
from sluicegate.proxy.reporting.logs.setup import queued_logging
from sluicegate.proxy.server.process_resources import reserve_descriptors
from sluicegate.proxy.server.server import Server
from sluicegate.proxy.server.startup import CannotStart
from sluicegate.proxy.session.topic_settings import Failures, Requester, SettingsChange
from sluicegate.proxy.state.settings_table import TopicValues
from sluicegate.proxy.workers.messages import (
    Adopt,
    Adopted,
    AdoptSettings,
    ChangeSettings,
    Command,
    Compile,
    CouldNotStart,
    Inbox,
    Outbox,
    PoliciesCompiled,
    Report,
    Request,
    SettingsAdopted,
    SettingsChanged,
    SnapshotRequest,
    Suspend,
    Suspended,
    WorkerSnapshot,
    WorkerStarted,
)
from sluicegate.validation.origins import NOWHERE
from sluicegate.validation.rules.rule import RuleUnusable


def run_worker(
    index: int,
    config: Config,
    mark: int,
    supervisor: Connection,
    inherited: tuple[socket.socket, ...],
    source: Source = NOWHERE,
    settings: tuple[tuple[str, TopicValues], ...] = (),
) -> None:
    """Run a worker process until SIGTERM, or until its supervisor requests a drain or ends.

    `mark` and `source` are passed to the worker's server. `inherited` contains listening sockets that the parent
    process has opened. `settings` contains the topic settings at the start.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor handles SIGHUP
    # Ctrl-C reaches the whole process group, and the supervisor passes it on
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reserve_descriptors()
    adopt_contents(source.kept)
    structlog.contextvars.bind_contextvars(worker=index)
    with queued_logging(config.log):
        uvloop.run(_Worker(config, mark, supervisor, InheritedSockets(inherited), index == 1, source, settings).run())


class _Worker:
    def __init__(
        self,
        config: Config,
        mark: int,
        supervisor: Connection,
        inherited: InheritedSockets,
        probes_brokers: bool,
        source: Source,
        settings: Sequence[tuple[str, TopicValues]],
    ) -> None:
        bind = inherited.inherited_or_bind(bind_shared)
        self._server = Server(
            config,
            bind=bind,
            mark=mark,
            probes_brokers=probes_brokers,
            source=source,
            change_settings=self._change_settings,
            settings=dict(settings),
        )
        self._supervisor = supervisor
        self._outbox = Outbox(supervisor, "to-supervisor")
        self._ended = asyncio.Event()
        self._reloading: asyncio.Task[None] | None = None
        self._compiled: tuple[int, Callable[[], None]] | None = None
        self._snapshot_task: asyncio.Task[None] | None = None
        self._settings_task: asyncio.Task[None] | None = None
        self._awaited: dict[int, Callable[[Failures], None]] = {}
        self._requests = 0

    async def run(self) -> None:
        try:
            await self._serve()
        finally:
            await asyncio.to_thread(self._outbox.close)

    async def _serve(self) -> None:
        try:
            await self._server.start()
        except CannotStart as error:
            self._outbox.send(CouldNotStart(str(error)))
            return
        loop = asyncio.get_running_loop()
        Inbox(self._supervisor, "from-supervisor", loop.call_soon_threadsafe, self._handle, self._ended.set)
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        self._outbox.send(WorkerStarted())
        await self._ended.wait()
        await self._server.drain()
        self._outbox.send(self._report())

    def _handle(self, message: Request) -> None:
        match message:
            case Command.DRAIN:
                self._ended.set()
            case Command.REPORT:
                self._outbox.send(self._report())
            case SnapshotRequest():
                self._snapshot_task = asyncio.get_running_loop().create_task(self._send_snapshot(message))
            case Suspend(suspended, number):
                self._server.suspend(suspended)
                self._outbox.send(Suspended(number))
            case AdoptSettings():
                self._settings_task = asyncio.get_running_loop().create_task(
                    self._adopt_settings(message, self._settings_task)
                )
            case Command.SETTINGS_READ:
                self._settings_task = asyncio.get_running_loop().create_task(self._settings_read(self._settings_task))
            case SettingsChanged(failed, number):
                self._awaited.pop(number)(failed)
            case Compile() | Adopt():
                self._reloading = asyncio.get_running_loop().create_task(self._reload(message, self._reloading))
            case _:
                assert_never(message)

    def _change_settings(
        self, changes: Sequence[SettingsChange], requester: Requester, report: Callable[[Failures], None]
    ) -> None:
        """Ask the supervisor to store changes of topic settings."""
        self._requests += 1
        self._awaited[self._requests] = report
        self._outbox.send(ChangeSettings(tuple(changes), requester, self._requests))

    async def _settings_read(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait([before])
        self._server.settings_read()

    async def _adopt_settings(self, message: AdoptSettings, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait([before])
        await self._server.adopt_settings(message.changes)
        self._outbox.send(SettingsAdopted(message.number))

    async def _send_snapshot(self, message: SnapshotRequest) -> None:
        state = await asyncio.to_thread(self._server.live_state, message.query)
        self._outbox.send(WorkerSnapshot(state, message.number))

    async def _reload(self, message: Compile | Adopt, before: "asyncio.Task[None] | None") -> None:
        """Handle reload requests in order."""
        if before is not None:
            await asyncio.wait([before])
        if isinstance(message, Compile):
            self._outbox.send(PoliciesCompiled(message.number, await self._compile(message)))
        elif self._compiled is not None and self._compiled[0] == message.number:
            self._compiled[1]()
            self._compiled = None
            self._outbox.send(Adopted(message.number))

    async def _compile(self, message: Compile) -> str | None:
        """Return why the policies cannot be used, or None if they can."""
        self._compiled = None
        adopt_contents(message.source.kept)
        try:
            self._compiled = message.number, await self._server.compiled(message.config, message.source)
        except RuleUnusable as error:
            return str(error)
        except Exception as error:
            structlog.get_logger("sluicegate").error("policies cannot be compiled", exc_info=error)
            return f"internal error: {type(error).__name__}"
        return None

    def _report(self) -> Report:
        server = self._server
        return Report(server.snapshot(), tuple(server.status.active()), server.successes())
