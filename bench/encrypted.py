"""TLS on both sides: CPU for each MB through sluicegate, all checks, and through a relay with TLS on both sides.

Closed loops of one request of 64 KiB over raw TLS sockets, in front of a stand-in broker that stores nothing, in
interleaved rounds. Part of `make bench`; alone: python -m bench.encrypted [--rounds N]. Writes
bench/results/encrypted.json and the table in bench/results/parts.md.
"""

import argparse
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import machine
from bench.before_stand_in import HOST, SETTINGS, stand_in, started, upstream_of
from bench.ending import end_on_sigterm
from bench.figures import PARTS, RESULTS, Figure, fill_in, goals_table, write_json
from bench.live_instructions import LOADS
from bench.small_requests import connect, exchange
from bench.targets import Target, running
from tests.broker.certificates import Authority, Certificate
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess

_OURS, _RELAY = "sluicegate", "bare relay"
_LOAD = next(load for load in LOADS if "lz4" in load.name)
_REQUESTS = 2000
_GOAL = 1.4


def measure(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Ms of CPU per MB, by target, round by round; one round before them warms up."""
    authority = Authority(folder)
    own = authority.sign("bench")
    trusting = ssl.create_default_context(cafile=authority.file)
    request = _LOAD.request()
    megabytes = _REQUESTS * _LOAD.units / _LOAD.requests
    found: dict[str, list[float]] = {_OURS: [], _RELAY: []}
    with ExitStack() as running_now:
        port = running_now.enter_context(stand_in(own.files))
        ours = running_now.enter_context(_sluicegate(folder, port, own, authority))
        relay = running_now.enter_context(_relay(folder, port, own, authority))
        for number in range(rounds + 1):
            for target in (ours, relay) if number % 2 else (relay, ours):
                machine.wait_until_quiet()
                sockets = [trusting.wrap_socket(each, server_hostname=HOST) for each in connect(target, 4)]
                before = target.usage().cpu_seconds
                exchange(sockets, request, _REQUESTS)
                cost = (target.usage().cpu_seconds - before) * 1000 / megabytes
                for each in sockets:
                    each.close()
                if number:
                    found[target.name].append(cost)
                    print(f"TLS, round {number}: {target.name}: {cost:.2f} ms CPU per MB", file=sys.stderr)
    return found


@contextmanager
def _sluicegate(folder: Path, port: int, own: Certificate, authority: Authority) -> Iterator[Target]:
    proxy = ProxyProcess(folder, f"{HOST}:{port}", SETTINGS)
    proxy.config["upstream"] = {**upstream_of(port), "tls": {"ca_file": str(authority.file)}}
    proxy.config["listen"]["tls"] = own.files
    proxy.environment = {}
    with started(proxy, _OURS) as target:
        yield target


@contextmanager
def _relay(folder: Path, port: int, own: Certificate, authority: Authority) -> Iterator[Target]:
    listen = free_ports(1)
    files = [str(own.chain), str(own.key), str(authority.file)]
    command = [sys.executable, "-m", "bench.relay", str(listen), str(port), *files]
    with running(command, folder / "relay.log", listen) as pid:
        yield Target(_RELAY, f"{HOST}:{listen}", f"{HOST}:{listen}", pid)


def figures_of(found: dict[str, list[float]]) -> list[Figure]:
    """The ratio within each round, then the median; and each target's own median."""
    ratio = statistics.median(a / b for a, b in zip(found[_OURS], found[_RELAY], strict=True))
    made = [Figure("CPU per MB, all checks, TLS : a relay with TLS on both sides", _LOAD.name, ratio, "", _GOAL)]
    for name, costs in found.items():
        made.append(Figure(f"ms CPU per MB, TLS on both sides, {name}", _LOAD.name, statistics.median(costs), "ms"))
    return made


def main() -> None:
    """Measure, write and print."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name:
        found = measure(Path(name), arguments.rounds)
    figures = figures_of(found)
    lines = [f"| {name} | {statistics.median(c):.2f} ({min(c):.2f} to {max(c):.2f}) |" for name, c in found.items()]
    day = time.strftime("%Y-%m-%d", time.gmtime())
    intro = f"Medians of {arguments.rounds} interleaved rounds (lowest to highest), the ratio within each round; {day}."
    table = "\n".join([intro, "", goals_table(figures), "", "| target | ms CPU per MB |", "| --- | --- |", *lines])
    print(table)
    write_json(RESULTS / "encrypted.json", figures)
    fill_in(PARTS, "encrypted", table)


if __name__ == "__main__":
    main()
