"""Puts the demo together: cluster, proxy, producers, and lines for a person to read."""

import asyncio
import signal
import time
from typing import Any

import uvloop
from rich.console import Console

from sluicegate.config.loading import load
from sluicegate.config.model import Config
from sluicegate.config.yaml_source import Source
from sluicegate.proxy.demo.embedded_cluster import EmbeddedCluster
from sluicegate.proxy.demo.sample_stream import SAMPLES, SampleStream
from sluicegate.proxy.process.server import Server
from sluicegate.proxy.reporting.violation_event import Event, event_of

_BROKERS = 3
_STATUS_SECONDS = 2.0
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000


def demo_config(upstream: list[str]) -> Config:
    """The configuration of README.md, in front of the embedded cluster."""
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
    return load(Source("demo", data), {}).config


class EventLines:
    """Prints each violation event as it happens."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, event: Event) -> None:
        """What is to be said of one partition."""
        said = event_of(event)
        self._console.print(
            f"[red]refused[/]   {said['topic']}-{said['partition']} from [bold]{said['client_id']}[/]: "
            f"{said['error']}, {said['bad_records']} of {said['records']} records",
            highlight=False,
        )
        for sample in said["samples"]:
            why = sample.get("diagnosis") or sample["reason"]
            self._console.print(
                f"          record {sample['index']}, timestamp {sample['timestamp']}: {why}", highlight=False
            )

    def close(self) -> None:
        """Nothing is kept."""


def run_demo(seconds: float | None) -> None:
    """Blocks until Ctrl-C, SIGTERM, or for `seconds`. Raises CannotStart."""
    uvloop.run(_run(seconds))


async def _run(seconds: float | None) -> None:
    console = Console(soft_wrap=True)
    cluster = EmbeddedCluster(_BROKERS)
    server = Server(demo_config(cluster.bootstrap), EventLines(console))
    await server.start()
    console.print(f"embedded cluster at {', '.join(cluster.bootstrap)} (it validates nothing itself)", highlight=False)
    console.print(
        f"sluicegate at       {server.bootstrap_address}: at most a day behind, an hour ahead; orders.* need keys",
        highlight=False,
    )
    console.print(f"metrics at          http://127.0.0.1:{server.admin_port}/metrics", highlight=False)
    names = ", ".join(f"{sample.client_id} to {sample.topic}" for sample in SAMPLES)
    console.print(f"four producers: {names}. Stop with Ctrl-C.\n", highlight=False)

    stream = SampleStream(str(server.bootstrap_address))
    stream.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    while not stop.is_set() and time.monotonic() < end:
        try:
            async with asyncio.timeout(min(_STATUS_SECONDS, max(0.0, end - time.monotonic()))):
                await stop.wait()
        except TimeoutError:
            _status(console, server, stream)
    await asyncio.to_thread(stream.stop)
    await server.drain()
    console.print("\nat the end:")
    _status(console, server, stream)


def _status(console: Console, server: Server, stream: SampleStream) -> None:
    tally = server.tally
    told = ", ".join(f"{count} {what}" for what, count in sorted(stream.outcomes.items())) or "nothing yet"
    console.print(
        f"[green]forwarded[/] {tally.accepted_records} records in {tally.accepted_partitions} batches; "
        f"refused {sum(tally.refused.values())} batches. The clients were told: {told}.",
        highlight=False,
    )
