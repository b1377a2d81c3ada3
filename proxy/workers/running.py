"""Runs a server or a supervisor until a signal.

SIGTERM and SIGINT drain it, and a second one stops it immediately. SIGHUP reloads the configuration. Without a
configuration file, SIGHUP only logs a line.
"""

import asyncio
import signal
from typing import TYPE_CHECKING

import structlog
import uvloop

from sluicegate.config.loading import Loaded
from sluicegate.proxy.network.inherited_sockets import NOTHING_INHERITED, InheritedSockets
from sluicegate.proxy.network.listeners import bind
from sluicegate.proxy.reload.config_file import ConfigFile
from sluicegate.proxy.reload.file_watch import FileWatch
from sluicegate.proxy.reload.reloader import Reloader
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.server.housekeeping import repeat_forever
from sluicegate.proxy.server.process_resources import raise_descriptor_limit, reserve_descriptors
from sluicegate.proxy.server.server import Server

if TYPE_CHECKING:
    from sluicegate.proxy.workers.supervisor import Supervisor


def run_until_signal(
    loaded: Loaded, file: ConfigFile | None = None, inherited: InheritedSockets = NOTHING_INHERITED
) -> None:
    """Run until a signal. Raises CannotStart.

    `file` is the configuration file, for reloads. `inherited` contains listening sockets that the parent process has
    opened.
    """
    raise_descriptor_limit()
    reserve_descriptors()
    uvloop.run(_run(loaded, file, inherited))


def _log_ignored_hangup() -> None:
    structlog.get_logger("sluicegate").warning(
        "SIGHUP ignored: the proxy has no configuration file",
        advice="start the proxy with --config to be able to reload; to stop it after the requests in "
        "flight, send SIGTERM",
    )


def _server(loaded: Loaded, query: PolicyQuery, inherited: InheritedSockets) -> "Server | Supervisor":
    config = loaded.config
    if inherited.sockets:
        structlog.get_logger("sluicegate").info("sockets were handed over", addresses=inherited.addresses)
    if config.workers == 1:
        return Server(config, bind=inherited.inherited_or_bind(bind), policy_query=query)
    from sluicegate.proxy.workers.supervisor import Supervisor  # noqa: PLC0415  # one process needs none

    return Supervisor(config, query, inherited)


async def _run(loaded: Loaded, file: ConfigFile | None, inherited: InheritedSockets) -> None:
    query = PolicyQuery(loaded)
    server = _server(loaded, query, inherited)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop_at_end() -> None:
        if stop.is_set():
            raise SystemExit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_at_end)

    async def adopt(newest: Loaded) -> None:
        await server.adopt(newest.config, newest.source)
        query.loaded = newest

    reloader = None
    if file is not None:
        reloader = Reloader(file, loaded, server.check, adopt, server.status, server.counters, query.history)
        server.reload = reloader.reload
    loop.add_signal_handler(signal.SIGHUP, reloader.request if reloader is not None else _log_ignored_hangup)
    await server.start()
    files = FileWatch(lambda: loaded.config.with_policies_of(query.loaded.config), server.status)
    watching = [loop.create_task(repeat_forever(files.look_again))]
    if reloader is not None:
        watching.append(loop.create_task(reloader.run()))
    await stop.wait()
    for task in watching:
        task.cancel()
    await server.drain()
