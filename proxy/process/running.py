"""Runs a server, or several as one, until a signal ends it: SIGTERM and SIGINT drain, a second one stops at once.

SIGHUP, which ends a process that does not say otherwise, only leaves a line in the log.
"""

import asyncio
import signal

import structlog
import uvloop

from sluicegate.config.model import Config
from sluicegate.proxy.process.server import Server
from sluicegate.proxy.process.supervisor import Supervisor
from sluicegate.proxy.session.admission import raise_descriptor_limit


def run_until_signal(config: Config) -> None:
    """Blocks. Raises CannotStart."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the loop runs
    raise_descriptor_limit()
    uvloop.run(_run(config))


def _say_what_a_hangup_does() -> None:
    structlog.get_logger("sluicegate").warning(
        "SIGHUP changes nothing: the configuration is read at start",
        advice="start it again to change it; SIGTERM lets what is in flight finish first",
    )


async def _run(config: Config) -> None:
    server = Server(config) if config.workers == 1 else Supervisor(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ended() -> None:
        if stop.is_set():
            raise SystemExit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended)
    loop.add_signal_handler(signal.SIGHUP, _say_what_a_hangup_does)
    await server.start()
    await stop.wait()
    await server.drain()
