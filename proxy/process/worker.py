"""One of several worker processes: a server on shared ports that obeys and reports to its supervisor.

They talk over one pipe. The supervisor asks with a Word; when its end closes, the worker drains too, so that none is
ever left behind.
"""

import asyncio
import signal
from dataclasses import dataclass
from enum import Enum, auto
from multiprocessing.connection import Connection

import structlog
import uvloop

from sluicegate.config.model import Config
from sluicegate.proxy.network.listeners import bind_shared
from sluicegate.proxy.process.server import CannotStart, Server
from sluicegate.proxy.reporting.log_setup import logging_behind_a_queue
from sluicegate.proxy.reporting.tally import Snapshot


class Word(Enum):
    """What a supervisor says."""

    REPORT = auto()
    DRAIN = auto()


@dataclass(frozen=True, slots=True)
class Started:
    """The worker takes connections."""


@dataclass(frozen=True, slots=True)
class CouldNotStart:
    """The worker ends; the text says what to change."""

    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker has counted, why it is not ready (None: it is), and what should be mended all the same."""

    snapshot: Snapshot
    not_ready: str | None
    trouble: str | None


@dataclass(frozen=True, slots=True)
class Adopt:
    """What a supervisor says when the file has changed: let this configuration's policies hold."""

    config: Config


Message = Started | CouldNotStart | Report


def run_worker(index: int, config: Config, mark: int, supervisor: Connection) -> None:
    """The worker process; `mark` as its server takes it. Ends when told to, on SIGTERM, or with its supervisor."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # its supervisor says what there is to say
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the supervisor passes it on
    structlog.contextvars.bind_contextvars(worker=index)
    with logging_behind_a_queue(config.log):
        uvloop.run(_Worker(config, mark, supervisor).run())


class _Worker:
    def __init__(self, config: Config, mark: int, supervisor: Connection) -> None:
        self._server = Server(config, bind=bind_shared, mark=mark)
        self._supervisor = supervisor
        self._ended = asyncio.Event()
        self._adopting: asyncio.Task[None] | None = None

    async def run(self) -> None:
        try:
            await self._server.start()
        except CannotStart as error:
            self._supervisor.send(CouldNotStart(str(error)))
            return
        loop = asyncio.get_running_loop()
        loop.add_reader(self._supervisor.fileno(), self._hear)
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        self._tell(Started())
        await self._ended.wait()
        await self._server.drain()
        self._tell(self._report())

    def _hear(self) -> None:
        try:
            word = self._supervisor.recv()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self._supervisor.fileno())
            self._ended.set()
            return
        if word is Word.REPORT:
            self._tell(self._report())
        elif isinstance(word, Adopt):
            self._adopting = asyncio.get_running_loop().create_task(self._adopt(word.config, self._adopting))
        else:
            self._ended.set()

    async def _adopt(self, config: Config, before: "asyncio.Task[None] | None") -> None:
        """One after the other, so that the last one said holds."""
        if before is not None:
            await asyncio.wait([before])
        await self._server.adopt(config)

    def _report(self) -> Report:
        return Report(self._server.snapshot(), self._server.health.not_ready, self._server.health.trouble)

    def _tell(self, message: Message) -> None:
        try:
            self._supervisor.send(message)
        except OSError:
            self._ended.set()
