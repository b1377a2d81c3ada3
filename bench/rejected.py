"""A request with one rejected record: CPU beside that of one with a good record, and beside an older sluicegate's.

Closed loops over raw sockets in front of a real broker, in interleaved rounds; a proxy may cache the broker's
response to a stand-in. `python -m bench.rejected --older COMMAND` measures another installation's `sluicegate` as
well, and only prints.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import machine
from bench.before_stand_in import SETTINGS, started
from bench.ending import end_on_sigterm
from bench.small_requests import connect, exchange, request_of
from bench.streams import new_topic
from bench.targets import Target, broker
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.wire.batches import NONE, Rec

_CONNECTIONS, _REQUESTS = 20, 10_000
_INVALID_TIMESTAMP = 32


def measure(folder: Path, commands: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Return CPU per request (µs) by request and target, for each round after a warm-up round."""
    now = int(time.time() * 1000)
    found: dict[str, list[float]] = {}
    with ExitStack() as running_now:
        address, _, _ = running_now.enter_context(broker(folder))
        targets = [running_now.enter_context(_sluicegate(folder, *named, address)) for named in commands.items()]
        topic = new_topic(address, {})
        asked = {
            "good": (request_of(topic, [Rec(now, b"key", b"v" * 100)], NONE), 0),
            "rejected": (request_of(topic, [Rec(now * 1_000_000, b"key", b"v" * 100)], NONE), _INVALID_TIMESTAMP),
        }
        for number in range(rounds + 1):
            for target in targets[:: 1 if number % 2 else -1]:
                for what, (request, error_code) in asked.items():
                    machine.wait_until_quiet()
                    sockets = connect(target, _CONNECTIONS)
                    before = target.usage().cpu_seconds
                    exchange(sockets, request, _REQUESTS, error_code)
                    cost = (target.usage().cpu_seconds - before) * 1e6 / _REQUESTS
                    for each in sockets:
                        each.close()
                    if number:
                        found.setdefault(f"{what}, {target.name}", []).append(cost)
                        print(f"round {number}: {what}, {target.name}: {cost:.1f} us CPU a request", file=sys.stderr)
    return found


@contextmanager
def _sluicegate(folder: Path, name: str, command: str, upstream: str) -> Iterator[Target]:
    own = folder / name
    own.mkdir()
    proxy = ProxyProcess(own, upstream, SETTINGS)
    proxy.command = [command]
    proxy.environment = {}
    with started(proxy, name) as target:
        yield target


def main() -> None:
    """Measure and print."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--older", help="the command of an older sluicegate")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    commands = {"this one": COMMAND} | ({"the older one": arguments.older} if arguments.older else {})
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name:
        found = measure(Path(name), commands, arguments.rounds)
    for what, costs in found.items():
        print(f"{what}: {statistics.median(costs):.1f} us ({min(costs):.1f} to {max(costs):.1f})")
    if arguments.older:
        pairs = zip(found["rejected, this one"], found["rejected, the older one"], strict=True)
        print(f"a rejected request, this one : the older one {statistics.median(a / b for a, b in pairs):.2f}")


if __name__ == "__main__":
    main()
