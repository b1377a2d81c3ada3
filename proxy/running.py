"""Runs a server, or several as one, until a signal ends it: SIGTERM and SIGINT drain, a second one stops at once."""

import asyncio
import signal

import uvloop

from config.model import Config
from proxy.server import Server
from proxy.supervisor import Supervisor


def run_until_signal(config: Config) -> None:
    """Blocks. Raises CannotStart."""
    uvloop.run(_run(config))


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
    await server.start()
    await stop.wait()
    await server.drain()
