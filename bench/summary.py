"""Converts raw runs to figures, a table and plots. python -m bench.summary converts existing runs again."""

import asyncio
import json
import statistics
from pathlib import Path
from typing import Any

from bench import decision
from bench.figures import APPENDIX, PAGE, RESULTS, Figure, fill_in, goals_table, write_json
from bench.one_session import schemas_used
from bench.streams import Run

_OURS = "sluicegate"
_RELAY = "bare relay"
_UNCHECKED = "sluicegate unchecked"
_PEER, _VALIDATING = "kroxylicious", "kroxylicious validating"
_LZ4, _PLAIN, _ZSTD = "1 KiB lz4", "100 B none", "100 B zstd"
_STREAMS = (_LZ4, _PLAIN, _ZSTD, "1 KiB lz4, librdkafka")
_REQUESTS = (
    "one record a request, 1 connection",
    "one record a request, 50 connections",
    "one record a request, 200 connections",
)


def line_of(run: Run) -> str:
    """Return a line about one run, for people who watch."""
    parts = [f"{run.megabytes / run.seconds:.1f} MB/s"]
    if run.requests:
        parts = [
            f"{run.requests / run.seconds:.0f} requests/s",
            f"{run.cpu_seconds / run.requests * 1e6:.1f} us CPU each",
        ]
    else:
        parts.append(f"{run.cpu_seconds / run.megabytes * 1000:.2f} ms CPU per MB")
    parts += [f"{name} {value:.2f} ms" for name, value in run.latencies.items()]
    return ", ".join(parts)


class _Runs:
    """The runs of one measurement by load and target. Medians are over rounds; ratios are within each round."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self._runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for run in raw["runs"]:
            self._runs.setdefault((run["load"], run["target"]), []).append(run)

    @property
    def loads(self) -> list[str]:
        return list(dict.fromkeys(load for load, _ in self._runs))

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(target for _, target in self._runs))

    def has(self, load: str, target: str) -> bool:
        return (load, target) in self._runs

    def values(self, load: str, target: str, what: str) -> list[float]:
        return [_value(run, what) for run in sorted(self._runs[load, target], key=lambda run: run["round"])]

    def median(self, load: str, target: str, what: str) -> float:
        return statistics.median(self.values(load, target, what))

    def ratio(self, load: str, what: str, target: str, to: str) -> float:
        pairs = zip(self.values(load, target, what), self.values(load, to, what), strict=True)
        return statistics.median(a / b if b else float("nan") for a, b in pairs)

    def median_difference(self, load: str, what: str, target: str, to: str) -> float:
        return statistics.median(
            a - b for a, b in zip(self.values(load, target, what), self.values(load, to, what), strict=True)
        )


def _value(run: dict[str, Any], what: str) -> float:
    match what:
        case "MB/s":
            value = run["megabytes"] / run["seconds"]
        case "requests/s":
            value = run["requests"] / run["seconds"]
        case "ms CPU per MB":
            value = run["cpu_seconds"] * 1000 / run["megabytes"]
        case "us CPU per request":
            value = run["cpu_seconds"] * 1e6 / run["requests"]
        case "resident MB":
            value = run["resident_bytes"] / 2**20
        case _:
            value = run["latencies"][what]
    return float(value)


def figures_of(raw: dict[str, Any]) -> list[Figure]:
    """Return every figure that has a goal, then every median."""
    runs = _Runs(raw)
    schemas = asyncio.run(schemas_used(1000))
    made = [
        *_goals(runs),
        Figure("construct calls on the way of a Produce request or its answer", "3,000 of v13", schemas, "", 0),
    ]
    for load in runs.loads:
        for target in runs.targets:
            if runs.has(load, target):
                made += [
                    Figure(f"{what} through {target}", load, runs.median(load, target, what), _unit(what))
                    for what in _shown(load)
                    if target != "direct" or ("CPU" not in what and "resident" not in what)
                ]
    made += [
        Figure(f"resident, {target}", f"{idle['connections']:,} idle connections", idle["resident_bytes"] / 2**20, "MB")
        for target, idle in raw["idle_connections"].items()
    ]
    made += [
        Figure(f"resident idle, {target}", "idle", size / 2**20, "MB")
        for target, size in raw["idle_resident_bytes"].items()
        if size
    ]
    return made


def _goals(runs: _Runs) -> list[Figure]:
    cpu, each = "ms CPU per MB", "us CPU per request"
    made = []
    for load, of_peer, of_relay in ((_LZ4, 1.0, 1.6), (_PLAIN, 1.0, 1.25), (_ZSTD, None, None)):
        made.append(_ratio(runs, "CPU per MB, all checks : Kroxylicious unchecked", load, cpu, _PEER, of_peer))
        made.append(_ratio(runs, "CPU per MB, all checks : bare relay", load, cpu, _RELAY, of_relay))
        made.append(_ratio(runs, "CPU per MB, all checks : sluicegate with no topic checked", load, cpu, _UNCHECKED))
    made.append(_ratio(runs, "CPU per MB, all checks : Kroxylicious's cheapest rule", _ZSTD, cpu, _VALIDATING, 0.8))
    one, fifty, two_hundred = _REQUESTS
    for load, goal in ((one, 1.5), (fifty, 1.25), (two_hundred, None)):
        made.append(_ratio(runs, "CPU per one-record request : bare relay", load, each, _RELAY, goal))
    for load in (fifty, two_hundred):
        made.append(_ratio(runs, "CPU per one-record request : Kroxylicious unchecked", load, each, _PEER, 1.0))
    for load in _STREAMS:
        made.append(_ratio(runs, "throughput, all checks : bare relay", load, "MB/s", _RELAY, 0.97, at_least=True))
    made.extend(
        Figure("added p99 : direct", load, runs.median_difference(load, "p99", _OURS, "direct"), "ms", 0.5)
        for load in ("20 MB/s", "2,000 requests/s")
    )
    made.append(_ratio(runs, "resident under load : Kroxylicious", _LZ4, "resident MB", _PEER))
    made.append(_ratio(runs, "CPU per MB, consumers : bare relay", "consumers", cpu, _RELAY, 1.2))
    idle = runs.raw["idle_connections"][_OURS]["bytes_for_one"] / 1024
    made.append(Figure("memory for one more idle connection", "idle connections", idle, "KiB", 24))
    for figure, held, goal in (
        ("resident, one process", "one_process", 64),
        ("resident, each further worker (PSS)", "further_worker", 24),
    ):
        made.append(Figure(figure, "nobody connected", runs.raw["memory"][held] / 2**20, "MB", goal))
    return [figure for figure in made if figure is not None]


def _ratio(
    runs: _Runs, figure: str, load: str, what: str, to: str, goal: float | None = None, *, at_least: bool = False
) -> Figure | None:
    """Return the ratio of our value to another target's within each round; None if the other was not measured."""
    if not runs.has(load, to):
        return None
    return Figure(figure, load, runs.ratio(load, what, _OURS, to), "", goal, at_least)


def _shown(load: str) -> tuple[str, ...]:
    if load.startswith("one record"):
        return ("requests/s", "us CPU per request", "resident MB")
    if load in ("20 MB/s", "2,000 requests/s"):
        return ("p50", "p99", "p99.9", "ms CPU per MB")
    return ("MB/s", "ms CPU per MB", "resident MB")


def _unit(what: str) -> str:
    return {"p50": "ms", "p99": "ms", "p99.9": "ms", "resident MB": "MB"}.get(what, what)


def medians_table(raw: dict[str, Any]) -> str:
    """Return a table of every load through every target."""
    runs = _Runs(raw)
    lines = []
    for load in runs.loads:
        shown = _shown(load)
        lines += ["", f"**{load}**", "", f"| target | {' | '.join(shown)} |", "| --- |" + " --- |" * len(shown)]
        for target in runs.targets:
            if runs.has(load, target):
                cells = [_cell(runs, load, target, what) for what in shown]
                lines.append(f"| {target} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(runs: _Runs, load: str, target: str, what: str) -> str:
    if target == "direct" and ("CPU" in what or "resident" in what):
        return "-"
    values = runs.values(load, target, what)
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def write_all(folder: Path) -> str:
    """Write bench.json, table.md and the plots from raw.json. Return the table."""
    from bench.plots import draw  # noqa: PLC0415  # matplotlib is slow to import

    raw = json.loads((folder / "raw.json").read_text())
    figures = figures_of(raw)
    write_json(folder / "bench.json", figures)
    of = raw["machine"]
    what = f"{of['cores']} cores ({of['cpu']}), Kafka {raw['kafka']}, Kroxylicious {raw['kroxylicious']}, "
    intro = (
        f"Medians of {raw['rounds']} interleaved rounds (lowest to highest), ratios within each round. {what}"
        f"Python {of['python']}, {raw['day']}; one run of {raw['seconds']} s."
    )
    goals, medians = goals_table(figures), medians_table(raw)
    text = f"{intro}\n\n{goals}\n{medians}\n"
    (folder / "table.md").write_text(text)
    draw(folder, raw)
    if folder == RESULTS:
        fill_in(PAGE, "goals", f"{intro}\n\n{goals}")
        fill_in(APPENDIX, "medians", medians)
        decision.write()
    return text


if __name__ == "__main__":
    print(write_all(RESULTS))
