"""The cost of value rules in a live proxy, beside Kroxylicious with its JSON rule: ms of CPU for each MB.

One run, interleaved rounds, the same client (librdkafka) and broker for all. Part of `make bench`; alone:
python -m bench.live_rules [--rounds N] [--megabytes N]. Writes bench/results/live_rules.json and the table in
docs/performance.md.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka.admin import AdminClient

from bench import machine, streams
from bench.ending import end_on_sigterm
from bench.figures import PAGE, RESULTS, Figure, fill_in, goals_table, write_json
from bench.rules import AVRO, JSON_SCHEMA, order_record
from bench.streams import Stream
from bench.targets import BOUNDS, Target, broker, kroxylicious, sluicegate

_NONE, _JSON, _SCHEMA, _AVRO, _PEER = (
    "sluicegate, no rule",
    "sluicegate, JSON rule",
    "sluicegate, JSON Schema",
    "sluicegate, Avro",
    "kroxylicious json",
)
_LOAD = "1 KiB JSON lz4"
_AVRO_LOAD = "1 KiB Avro lz4"
_VALUES = 1000
# A JVM becomes faster during the first GB of traffic. It is warm when its speed no longer changes.
_LEAST_WARM_UPS, _MOST_WARM_UPS = 6, 20
_STILL_FASTER = 0.9
_FIGURE = "CPU per MB"


@dataclass(frozen=True, slots=True)
class Load:
    """Values that are sent over and over."""

    name: str
    values: Sequence[bytes]


def loads() -> tuple[Load, Load]:
    """Orders as JSON and as Avro, all of them different."""
    orders = [order_record(number) for number in range(_VALUES)]
    schema = fastavro.parse_schema(AVRO)
    texts, datums = [], []
    for one in orders:
        out = BytesIO()
        fastavro.schemaless_writer(out, schema, one)
        datums.append(out.getvalue())
        texts.append(json.dumps(one, separators=(",", ":")).encode())
    return Load(_LOAD, texts), Load(_AVRO_LOAD, datums)


def _settings(folder: Path) -> dict[str, dict[str, Any]]:
    """What each sluicegate is started with."""
    (folder / "order.json").write_text(json.dumps(JSON_SCHEMA))
    (folder / "order.avsc").write_text(json.dumps(AVRO))
    rules: dict[str, dict[str, Any]] = {
        _JSON: {"json": {}},
        _SCHEMA: {"schema": {"file": str(folder / "order.json"), "format": "json"}},
        _AVRO: {"schema": {"file": str(folder / "order.avsc"), "format": "avro"}},
    }
    made: dict[str, dict[str, Any]] = {_NONE: {"defaults": BOUNDS}}
    for name, value in rules.items():
        made[name] = {"defaults": {**BOUNDS, "rules": [{"name": "body", "value": value}]}}
    return made


def measure(folder: Path, rounds: int, megabytes: int) -> dict[str, list[float]]:
    """Ms of CPU per MB, by target, round by round."""
    json_load, avro_load = loads()
    found: dict[str, list[float]] = {}
    with ExitStack() as running:
        address, _, _ = running.enter_context(broker(folder))
        admin = AdminClient({"bootstrap.servers": address})
        targets = [
            running.enter_context(sluicegate(folder, name, address, settings))
            for name, settings in _settings(folder).items()
        ]
        targets.append(running.enter_context(kroxylicious(folder, _PEER, address)))

        def run(target: Target, wanted: int) -> float:
            load = avro_load if target.name == _AVRO else json_load
            size = statistics.mean(map(len, load.values))
            stream = Stream(load.name, round(size), "lz4", 65_536, wanted)
            topic = streams.new_topic(address, {})
            before = target.usage().cpu_seconds
            measured = streams.librdkafka_producer(target, topic, stream, load.values)
            spent = target.usage().cpu_seconds - before
            admin.delete_topics([topic])[topic].result(30)
            return spent * 1000 / measured.megabytes

        for target in targets:
            before, now = float("inf"), run(target, megabytes)
            for number in range(_MOST_WARM_UPS if target.name == _PEER else 0):
                if number >= _LEAST_WARM_UPS and now > before * _STILL_FASTER:
                    break
                before, now = min(before, now), run(target, megabytes * 2)
                print(f"warming up {target.name}: {now:.2f} ms CPU per MB", file=sys.stderr)
        for number in range(rounds):
            shift = number % len(targets)  # each round starts with a different target
            for target in targets[shift:] + targets[:shift]:
                machine.wait_until_quiet()
                cost = run(target, megabytes)
                found.setdefault(target.name, []).append(cost)
                print(f"round {number + 1}: {target.name}: {cost:.2f} ms CPU per MB", file=sys.stderr)
    return found


def figures_of(found: dict[str, list[float]]) -> list[Figure]:
    """Ratios within each round, then the medians."""

    def ratio(target: str, to: str) -> float:
        return statistics.median(a / b for a, b in zip(found[target], found[to], strict=True))

    made = [
        Figure(f"{_FIGURE}, JSON rule : Kroxylicious's JSON rule", _LOAD, ratio(_JSON, _PEER), "", 0.8),
        Figure(f"{_FIGURE}, JSON Schema : JSON rule", _LOAD, ratio(_SCHEMA, _JSON), "", 1.5),
        Figure(f"{_FIGURE}, Avro : JSON rule", _AVRO_LOAD, ratio(_AVRO, _JSON), "", 1.5),
        Figure(f"{_FIGURE}, JSON rule : no rule", _LOAD, ratio(_JSON, _NONE), ""),
    ]
    for target, costs in found.items():
        load = _AVRO_LOAD if target == _AVRO else _LOAD
        made.append(Figure(f"ms CPU per MB through {target}", load, statistics.median(costs), "ms CPU per MB"))
    return made


def table_of(figures: Sequence[Figure], found: dict[str, list[float]]) -> str:
    """What docs/performance.md shows."""
    lines = ["| target | ms CPU per MB |", "| --- | --- |"]
    for target, costs in found.items():
        lines.append(f"| {target} | {statistics.median(costs):.2f} ({min(costs):.2f} to {max(costs):.2f}) |")
    rounds = len(next(iter(found.values())))
    day = time.strftime("%Y-%m-%d", time.gmtime())
    intro = f"Medians of {rounds} interleaved rounds (lowest to highest), ratios within each round; {day}."
    return f"{intro}\n\n{goals_table(figures)}\n\n" + "\n".join(lines)


def main() -> None:
    """Measure, write and print."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluicegate-bench-") as name:
        found = measure(Path(name), arguments.rounds, arguments.megabytes)
    figures = figures_of(found)
    table = table_of(figures, found)
    print(table)
    write_json(RESULTS / "live_rules.json", figures)
    fill_in(PAGE, "live rules", table)


if __name__ == "__main__":
    main()
