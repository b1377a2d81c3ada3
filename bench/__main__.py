"""`make bench`: everything through everything, in interleaved rounds of one run; writes bench/results. If it is
interrupted, the next one of the same code measures only the loads that are left.

Run: python -m bench [--short]. Needs the brokers (make kafka) and, but for --short, Kroxylicious (.bench/kroxylicious).
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AdminClient

from bench import idle_connections, machine, memory, small_requests, streams, summary
from bench.ending import end_on_sigterm
from bench.figures import RESULTS
from bench.resumed import commit_of_code
from bench.streams import Run, Stream
from bench.targets import BOUNDS, Target, broker, kroxylicious, relay, sluicegate
from bench.unfinished import UnfinishedRun

STREAMS = (
    Stream("1 KiB lz4", 1024, "lz4", 65_536, 400),
    Stream("100 B none", 100, "none", 16_384, 140),
    Stream("100 B zstd", 100, "zstd", 16_384, 140),
)
_UNCHECKED = {"defaults": {"checks": "none"}}
# A JVM needs about 2 GB of traffic to warm up, and again after a change of the load.
_WARM_UP_MB = (2000, 500, 500)


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a run: the full measurement, or a short check. `clients`: how many send the small requests."""

    rounds: int
    share: float
    with_peers: bool
    streams: tuple[Stream, ...]
    clients: tuple[int, ...]
    idle_connections: tuple[int, int]


_WHOLE = Extent(5, 1.0, with_peers=True, streams=STREAMS, clients=(1, 50, 200), idle_connections=(1000, 5000))
_SHORT = Extent(1, 0.05, with_peers=False, streams=STREAMS[:1], clients=(50,), idle_connections=(50, 250))


class Bench:
    """One run of all loads against one broker."""

    def __init__(self, extent: Extent, targets: list[Target], broker_address: str, kept: UnfinishedRun) -> None:
        self._extent = extent
        self._kept = kept
        self._started, self._before = time.monotonic(), kept.seconds
        self._targets = targets
        self._admin = AdminClient({"bootstrap.servers": broker_address})
        self._broker = broker_address

    @property
    def seconds(self) -> float:
        """Return the duration so far, interrupted runs included."""
        return self._before + time.monotonic() - self._started

    def streams(self) -> None:
        """Producers as fast as they can."""
        for stream in self._extent.streams:
            sized = replace(stream, megabytes=max(5, int(stream.megabytes * self._extent.share)))
            self._rounds(stream.name, partial(streams.java_producer, stream=sized))
        sized = replace(STREAMS[0], megabytes=max(5, int(STREAMS[0].megabytes * self._extent.share)))
        self._rounds("1 KiB lz4, librdkafka", partial(streams.librdkafka_producer, stream=sized))

    def requests(self) -> None:
        """One record a request."""
        for connections in self._extent.clients:
            count = max(1000, int((10_000 if connections == 1 else 30_000) * self._extent.share))
            name = f"one record a request, {connections} connection{'s' * (connections > 1)}"
            self._rounds(name, partial(small_requests.closed_loop, connections=connections, requests=count))

    def fixed_rates(self) -> None:
        """Open loops, for latency."""
        seconds = max(1.0, 8 * self._extent.share)
        self._rounds("20 MB/s", lambda t, topic: streams.at_fixed_rate(t, topic, STREAMS[0], 20, seconds))
        self._rounds("2,000 requests/s", lambda t, topic: small_requests.at_fixed_rate(t, topic, 20, 2000, seconds))

    def consumers(self) -> None:
        """One topic of 1 GB, read through everything."""
        if self._kept.has("consumers"):
            return
        megabytes = max(20, int(1000 * self._extent.share))
        topic = self._topic({"retention.bytes": "-1"})
        streams.java_producer(self._targets[0], topic, replace(STREAMS[0], megabytes=megabytes + 20))
        self._rounds("consumers", lambda t, _topic: streams.consume(t, topic, megabytes))

    def connections(self) -> dict[str, dict[str, float]]:
        """Measure the cost of idle connections, by target."""
        few, many = self._extent.idle_connections
        wanted = ("bare relay", "sluicegate", "kroxylicious")
        return {t.name: asdict(idle_connections.measure(t, few, many)) for t in self._targets if t.name in wanted}

    def warm_up(self) -> None:
        """Peers get what a JVM needs; ours gets some too."""
        for target in self._targets[1:]:
            for stream, peers_megabytes in zip(STREAMS, _WARM_UP_MB, strict=True):
                wanted = peers_megabytes if target.name.startswith("kroxylicious") else 50
                topic = self._topic()
                sized = replace(stream, megabytes=int(wanted * self._extent.share) + 5)
                streams.java_producer(target, topic, sized)
                self._drop(topic)

    def _rounds(self, load: str, run: Callable[[Target, str], Run]) -> None:
        if self._kept.has(load):
            print(f"{load}: measured before the interruption", file=sys.stderr)
            return
        runs: list[dict[str, object]] = []
        for number in range(self._extent.rounds):
            shift = number % len(self._targets)  # each round starts with a different target
            for target in self._targets[shift:] + self._targets[:shift]:
                topic = self._topic()
                if self._extent.rounds > 1:
                    machine.wait_until_quiet()
                before = target.usage().cpu_seconds
                measured = run(target, topic)
                usage = target.usage()
                if not measured.resident_bytes:
                    measured.cpu_seconds = usage.cpu_seconds - before
                    measured.resident_bytes = usage.resident_bytes
                runs.append({"load": load, "round": number, "target": target.name, **asdict(measured)})
                self._drop(topic)
                print(f"{load}, round {number + 1}: {target.name}: {summary.line_of(measured)}", file=sys.stderr)
        self._kept.add(runs, self.seconds)

    def _topic(self, settings: dict[str, str] | None = None) -> str:
        return streams.new_topic(self._broker, settings or {})

    def _drop(self, topic: str) -> None:
        for future in self._admin.delete_topics([topic]).values():
            future.result(30)


def main() -> None:
    """Measure, write and print."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="only see that it works; results go to --out")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    extent = _SHORT if arguments.short else _WHOLE
    started = time.time()
    kept = UnfinishedRun(arguments.out, commit_of_code())
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name, ExitStack() as running:
        folder = Path(name)
        address, behind_relay, relay_port = running.enter_context(broker(folder))
        targets = [Target("direct", address, address, None)]
        targets.append(running.enter_context(relay(folder, relay_port, behind_relay)))
        checked = {"defaults": BOUNDS}
        for label, settings in (
            ("sluicegate unchecked", _UNCHECKED),
            ("sluicegate", checked),
            ("sluicegate, 4 workers", {**checked, "workers": 4}),
        ):
            targets.append(running.enter_context(sluicegate(folder, label, address, settings)))
        if extent.with_peers:
            for label in ("kroxylicious", "kroxylicious validating"):
                targets.append(running.enter_context(kroxylicious(folder, label, address)))
        idle = {target.name: target.usage().resident_bytes for target in targets}
        bench = Bench(extent, targets, address, kept)
        if extent.with_peers:
            bench.warm_up()
        bench.streams()
        bench.requests()
        bench.fixed_rates()
        bench.consumers()
        idle_ones = bench.connections()
    raw = {
        "machine": machine.describe(),
        "kafka": "4.3.1",
        "kroxylicious": "0.12.0" if extent.with_peers else None,
        "day": time.strftime("%Y-%m-%d", time.gmtime(started)),
        "rounds": extent.rounds,
        "seconds": round(bench.seconds),
        "idle_resident_bytes": idle,
        "idle_connections": idle_ones,
        "memory": asdict(memory.measure()),
        "runs": kept.runs,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
    print(summary.write_all(arguments.out))
    kept.end()


if __name__ == "__main__":
    main()
