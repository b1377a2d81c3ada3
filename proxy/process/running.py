"""Runs a server, or several as one, until a signal ends it: SIGTERM and SIGINT drain, a second one stops at once.

SIGHUP has the configuration's file read again; without a file it only leaves a line in the log.
"""

import asyncio
import signal
from typing import TYPE_CHECKING

import structlog
import uvloop

from sluicegate.config.model import Config
from sluicegate.proxy.network.inherited_sockets import NOTHING_INHERITED, InheritedSockets
from sluicegate.proxy.network.listeners import bind
from sluicegate.proxy.process.config_file import ConfigFile
from sluicegate.proxy.process.descriptors import raise_descriptor_limit, reserve_descriptors
from sluicegate.proxy.process.reloading import Reloading
from sluicegate.proxy.process.server import Server

if TYPE_CHECKING:
    from sluicegate.proxy.process.supervisor import Supervisor


def run_until_signal(
    config: Config, file: ConfigFile | None = None, inherited: InheritedSockets = NOTHING_INHERITED
) -> None:
    """Blocks. `file` is where the configuration came from, to be read again; `inherited` are listening sockets that
    were there before. Raises CannotStart.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the loop runs
    raise_descriptor_limit()
    reserve_descriptors()
    uvloop.run(_run(config, file, inherited))


def _say_what_a_hangup_does() -> None:
    structlog.get_logger("sluicegate").warning(
        "SIGHUP changes nothing: there is no configuration file to be read again",
        advice="give one with --config; SIGTERM lets what is in flight finish first",
    )


def _server(config: Config, file: ConfigFile | None, inherited: InheritedSockets) -> "Server | Supervisor":
    if inherited.sockets:
        structlog.get_logger("sluicegate").info("sockets were handed over", addresses=inherited.addresses)
    if config.workers == 1:
        return Server(config, bind=inherited.before(bind), file=file)
    from sluicegate.proxy.process.supervisor import Supervisor  # noqa: PLC0415  # one process needs none

    return Supervisor(config, file, inherited)


async def _run(config: Config, file: ConfigFile | None, inherited: InheritedSockets) -> None:
    server = _server(config, file, inherited)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ended() -> None:
        if stop.is_set():
            raise SystemExit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended)
    reloading = Reloading(file, config, server.adopt, server.health, server.tally) if file is not None else None
    loop.add_signal_handler(signal.SIGHUP, reloading.ask if reloading is not None else _say_what_a_hangup_does)
    await server.start()
    watching = loop.create_task(reloading.run()) if reloading is not None else None
    await stop.wait()
    if watching is not None:
        watching.cancel()
    await server.drain()
