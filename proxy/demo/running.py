"""Runs the demo with its cluster, proxy, producers and console output."""

import asyncio
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console

from sluicegate.config.files.source import Source
from sluicegate.config.loading import Loaded, load
from sluicegate.config.model import Config
from sluicegate.proxy.demo.display import display_on
from sluicegate.proxy.demo.results import DemoResults
from sluicegate.proxy.demo.sample_stream import SampleStream
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.sandbox.mock_cluster import MockCluster
from sluicegate.proxy.server.server import Server
from sluicegate.proxy.server.startup import CannotStart

_SITE = "https://docs.example.com/OWNER"
"""The published documentation (SITE in .github/identity.env)."""
_SENDS_NANOSECONDS = (
    'import time; from confluent_kafka import Producer; p = Producer({"bootstrap.servers": "%s"}); '
    'p.produce("payments", "mine", "k", timestamp=time.time_ns(), on_delivery=print); p.flush()'
)


def introduction_lines(bootstrap: str, admin_port: int | None) -> Iterator[str]:
    """Yield the lines of the introduction.

    Each command is on one line, so that it can be copied from a terminal of any width.
    """
    yield "An embedded cluster of three brokers runs in this process. It does not validate"
    yield "records: sluicegate does. Four producers send to it, and three of them send some"
    yield "bad records."
    yield ""
    yield f"clients connect to  {bootstrap}"
    yield f"web UI              http://127.0.0.1:{admin_port}/ (in a terminal: sluicegate top)"
    yield f"metrics             http://127.0.0.1:{admin_port}/metrics"
    yield "limits              timestamps at most a day old and an hour ahead;"
    yield "                    each record in topics orders.* has a key"
    yield f"policy of a topic   http://127.0.0.1:{admin_port}/api/policy?topic=orders.eu"
    yield ""
    yield "Try one of these in another terminal:"
    yield "  # no key on a compacted topic: rejected"
    yield f"  echo mine | kcat -P -b {bootstrap} -t orders.eu"
    yield f"  echo mine | kafka-console-producer.sh --bootstrap-server {bootstrap} --topic orders.eu"
    yield "  # nanoseconds where milliseconds belong: rejected. Divide by 1_000_000: stored"
    yield f"  {_python()} -c {shlex.quote(_SENDS_NANOSECONDS % bootstrap)}"
    yield f"  curl -s http://127.0.0.1:{admin_port}/metrics | grep rejected"
    yield ""
    yield f"Next: {_tutorial()}. Ctrl-C ends the demo."


def _tutorial() -> str:
    """Return the tutorial's file in a clone, or its web address in other installations."""
    page = Path("docs/tutorial.md")
    return str(page) if page.exists() else f"{_SITE}/{page.stem}.html"


def _python() -> str:
    """Return this interpreter's path, relative to the working directory if possible."""
    here = Path(sys.executable)
    return str(here.relative_to(Path.cwd())) if here.is_relative_to(Path.cwd()) else os.fspath(here)


_BROKERS = 3
_FURTHER = 1000
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000


def demo_configuration(upstream: list[str]) -> Loaded:
    """Return README.md's configuration for the embedded cluster.

    The environment can override it, for example the ports.
    """
    data: dict[str, Any] = {
        "upstream": {"bootstrap": upstream},
        "listen": {"bootstrap": "127.0.0.1:19092", "broker_port_base": 19100},
        "admin": {"listen": "127.0.0.1:9650"},
        "defaults": {
            "message.timestamp.before.max.ms": _DAY_MS,
            "message.timestamp.after.max.ms": _HOUR_MS,
        },
        "topics": [{"match": "orders.*", "cleanup.policy": "compact"}],
        "log": {"level": "error"},
        "drain_timeout_seconds": 2,
    }
    return load(Source("the demo", data), os.environ)


def run_demo(seconds: float | None) -> None:
    """Run until Ctrl-C or SIGTERM, or for `seconds`. Raises CannotStart and ConfigError."""
    uvloop.run(_run(seconds))


def _other_port(config: Config, reason: str) -> str:
    """Return the command that starts the demo on another port if the port is in use, or "" for other reasons."""
    wanted = (
        ("SLUICEGATE__LISTEN__BOOTSTRAP", config.listen.bootstrap),
        ("SLUICEGATE__ADMIN__LISTEN", config.admin.listen),
    )
    for variable, address in wanted:
        if address is not None and f"cannot listen on {address}:" in reason:
            return f": {variable}={address.host}:{address.port + _FURTHER} sluicegate demo"
    return ""


async def _run(seconds: float | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    results = DemoResults()
    cluster = MockCluster(_BROKERS)  # the cluster ends when this variable is deleted
    loaded = demo_configuration(cluster.bootstrap)
    config = loaded.config
    server = Server(config, results, policy_query=PolicyQuery(loaded))
    try:
        await server.start()
    except CannotStart as error:
        raise CannotStart(f"{error}{_other_port(config, str(error))}") from error
    for line in introduction_lines(str(server.bootstrap_address), server.admin_port):
        console.print(line, markup=False)
    console.print()

    stream = SampleStream(str(server.bootstrap_address), results.delivered)
    stream.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    display = display_on(console, results)
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    while not stop.is_set() and time.monotonic() < end:
        try:
            async with asyncio.timeout(min(display.seconds, max(0.0, end - time.monotonic()))):
                await stop.wait()
        except TimeoutError:
            display.update(server.snapshot().counters)
    await asyncio.to_thread(stream.stop)
    await server.drain()
    display.end(server.snapshot().counters)
