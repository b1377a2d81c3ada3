"""Instructions of the live process, sockets and event loop included, for each request or MB that passes through it.

Closed loops of one and the same request over raw sockets, in front of a stand-in broker that stores nothing. Part of
`make bench`; alone: python -m bench.live_instructions [--keep FOLDER], which leaves callgrind's profiles there.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import shake_128
from pathlib import Path

from bench.before_stand_in import HOST, SETTINGS, stand_in, started, upstream_of
from bench.counters import Counter, counter
from bench.ending import end_on_sigterm
from bench.figures import PARTS, RESULTS, Figure, fill_in, goals_table, write_json
from bench.small_requests import connect, exchange, request_of
from bench.targets import Target, running
from tests.broker.ports import free_ports
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.wire.batches import CODECS, Rec

_TOPIC = "bench"
_START_SECONDS = 600
_MB = 1 << 20
_LETTERS = bytes(ord("A") + byte % 26 for byte in range(256))


@dataclass(frozen=True, slots=True)
class Load:
    """`connections` that send a batch of `records` of `size` bytes each, `requests` times in all; `goal` per unit."""

    name: str
    codec: str
    records: int
    size: int
    connections: int
    requests: int
    unit: str
    goal: int

    @property
    def units(self) -> float:
        """What a count is divided by: requests, or MB of records before they are compressed."""
        return self.requests if self.unit == "a request" else self.requests * self.records * self.size / _MB

    def request(self) -> bytes:
        """Letters at random, as Kafka's own load tool sends them."""
        now = int(time.time() * 1000)
        records = [
            Rec(now + i // 8, b"key", shake_128(b"%d" % i).digest(self.size).translate(_LETTERS))
            for i in range(self.records)
        ]
        return request_of(_TOPIC, records, CODECS[self.codec])


LOADS = (
    Load("one record a request, 20 connections", "none", 1, 100, 20, 2000, "a request", 14_000),
    Load("64 KiB lz4, 4 connections", "lz4", 64, 1024, 4, 320, "a MB", 2_100_000),
    Load("16 KiB plain of 100 B, 4 connections", "none", 160, 100, 4, 1280, "a MB", 2_600_000),
)


def measure(with_counter: Counter, folder: Path) -> list[Figure]:
    """Every load through sluicegate, with its goal, and through the bare relay."""
    made = []
    with stand_in() as port:
        for name, begun in (("sluicegate", _sluicegate), ("bare relay", _relay)):
            with begun(with_counter, folder, port) as target:
                for load in LOADS:
                    count = _count(with_counter, target, load)
                    goal = load.goal if name == "sluicegate" else None
                    made.append(Figure(f"user-mode instructions {load.unit}, {name}", load.name, count, "", goal))
                    print(f"{load.name}: {name}: {count:,.0f} {load.unit}", file=sys.stderr)
    return made


def _count(with_counter: Counter, target: Target, load: Load) -> float:
    assert target.pid is not None
    request = load.request()
    sockets = connect(target, load.connections)
    exchange(sockets, request, 20 * load.connections)
    counted = with_counter.count(target.pid, lambda: exchange(sockets, request, load.requests))
    for each in sockets:
        each.close()
    return counted / load.units


@contextmanager
def _sluicegate(with_counter: Counter, folder: Path, port: int) -> Iterator[Target]:
    proxy = ProxyProcess(folder, f"{HOST}:{port}", SETTINGS)
    proxy.start_seconds = _START_SECONDS
    proxy.config["upstream"] = upstream_of(port)
    program = [sys.executable, "-m", "bench.slowed_proxy"] if with_counter.is_slow else [COMMAND]
    proxy.command = [*with_counter.prefix, *program]
    proxy.environment = with_counter.environment
    with started(proxy, "sluicegate") as target:
        yield target


@contextmanager
def _relay(with_counter: Counter, folder: Path, port: int) -> Iterator[Target]:
    listen = free_ports(1)
    command = [*with_counter.prefix, sys.executable, "-m", "bench.relay", str(listen), str(port)]
    with running(command, folder / "relay.log", listen, with_counter.environment) as pid:
        yield Target("bare relay", f"{HOST}:{listen}", f"{HOST}:{listen}", pid)


def main() -> None:
    """Measure, write and print."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="an empty folder for callgrind's profiles; writes no results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name:
        folder = arguments.keep or Path(name)
        with_counter = counter(folder)
        figures = measure(with_counter, folder)
    table = f"Counted by {with_counter.name}.\n\n{goals_table(figures)}"
    print(table)
    if arguments.keep is None:
        write_json(RESULTS / "live.json", figures)
        fill_in(PARTS, "live", table)


if __name__ == "__main__":
    main()
