"""Measures without a broker's work: sluicegate forwards to a stand-in that stores nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.targets import BOUNDS, Target
from tests.bounds.side_process import SideProcess
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess

HOST = "127.0.0.1"
SETTINGS: dict[str, Any] = {"defaults": BOUNDS, "violations": {}, "log": {"level": "error"}}


@contextmanager
def stand_in(tls: dict[str, str] | None = None) -> Iterator[int]:
    """Start the stand-in and yield its port. `tls` contains the files of its certificate."""
    port = free_ports(1)
    process = SideProcess("tests.bounds.stand_in", node=1, nodes={1: (HOST, port)}, mode="sound", tls=tls)
    try:
        process.wait_ready()
        yield port
    finally:
        process.stop()


def upstream_of(port: int) -> dict[str, Any]:
    """Return the `upstream` section of a proxy in front of the stand-in."""
    address = f"{HOST}:{port}"
    return {"bootstrap": [address], "brokers": {1: address}}


@contextmanager
def started(proxy: ProxyProcess, name: str) -> Iterator[Target]:
    """Run a proxy until the end of the block."""
    try:
        proxy.start()
        assert proxy.process is not None
        yield Target(name, proxy.bootstrap, f"{HOST}:{proxy.broker_port(1)}", proxy.process.pid)
    finally:
        proxy.stop()
