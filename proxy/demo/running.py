"""Puts the demo together: cluster, proxy, producers, and what a person sees of them."""

import asyncio
import os
import signal
import time
from typing import Any

import uvloop
from rich.console import Console

from sluicegate.config.loading import load
from sluicegate.config.model import Config
from sluicegate.config.source import Source
from sluicegate.proxy.demo.embedded_cluster import EmbeddedCluster
from sluicegate.proxy.demo.sample_stream import SampleStream
from sluicegate.proxy.demo.shown import shown_on
from sluicegate.proxy.demo.told import Told
from sluicegate.proxy.demo.what_next import introduction
from sluicegate.proxy.server.server import Server

_BROKERS = 3
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000


def demo_config(upstream: list[str]) -> Config:
    """The configuration of README.md, in front of the embedded cluster; the environment goes before it, so that other
    ports can be named.
    """
    data: dict[str, Any] = {
        "upstream": {"bootstrap": upstream},
        "listen": {"bootstrap": "127.0.0.1:19092", "broker_ports": 19100},
        "admin": {"listen": "127.0.0.1:9650"},
        "defaults": {
            "message.timestamp.before.max.ms": _DAY_MS,
            "message.timestamp.after.max.ms": _HOUR_MS,
        },
        "topics": [{"match": "orders.*", "cleanup.policy": "compact"}],
        "log": {"level": "error"},
        "drain_seconds": 2,
    }
    return load(Source("demo", data), os.environ).config


def run_demo(seconds: float | None) -> None:
    """Blocks until Ctrl-C, SIGTERM, or for `seconds`. Raises CannotStart and ConfigError."""
    uvloop.run(_run(seconds))


async def _run(seconds: float | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    told = Told()
    cluster = EmbeddedCluster(_BROKERS)  # lives as long as this name
    server = Server(demo_config(cluster.bootstrap), told)
    await server.start()
    for line in introduction(str(server.bootstrap_address), server.admin_port):
        console.print(line, markup=False)
    console.print()

    stream = SampleStream(str(server.bootstrap_address), told.answered)
    stream.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    shown = shown_on(console, told)
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    while not stop.is_set() and time.monotonic() < end:
        try:
            async with asyncio.timeout(min(shown.seconds, max(0.0, end - time.monotonic()))):
                await stop.wait()
        except TimeoutError:
            shown.look(server.snapshot().tally)
    await asyncio.to_thread(stream.stop)
    await server.drain()
    shown.end(server.snapshot().tally)
