"""The figures that a reader needs to decide, taken from bench/results: python -m bench.decision

Writes the tables of docs/is-it-for-me.md and docs/how-to/sizing.md. `make bench` runs it after its measurements.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.figures import PAGE, RESULTS, fill_in

DECISION = PAGE.with_name("is-it-for-me.md")
SIZING = PAGE.parent / "how-to/sizing.md"
_OURS = "sluicegate"
_STREAMS = {
    "1 KiB lz4": "records of 1 KiB, lz4, Java's producer",
    "1 KiB lz4, librdkafka": "records of 1 KiB, lz4, librdkafka",
    "100 B none": "records of 100 bytes, not compressed, Java's producer",
    "100 B zstd": "records of 100 bytes, zstd, Java's producer",
}
_REQUESTS = "one record a request, 50 connections"
_PERCENTILES = ("p50", "p99", "p99.9")
_RATES = ("20 MB/s", "2,000 requests/s")


class Results:
    """The medians of the last `make bench`, and the run that they are of."""

    def __init__(self, folder: Path = RESULTS) -> None:
        figures: list[dict[str, Any]] = json.loads((folder / "bench.json").read_text())
        self._values: Mapping[tuple[str, str], float] = {(row["figure"], row["load"]): row["value"] for row in figures}
        raw: dict[str, Any] = json.loads((folder / "raw.json").read_text())
        machine = raw["machine"]
        self.run = (
            f"{raw['day']}, {machine['cores']} cores ({machine['cpu']}) shared with broker and clients, "
            f"Kafka {raw['kafka']}, Python {machine['python']}"
        )

    def of(self, figure: str, load: str, target: str = _OURS) -> float:
        """Return a median. Raises KeyError if it was not measured."""
        return self._values[f"{figure} through {target}", load]


def capacity(results: Results) -> str:
    """How much one core carries: the CPU of a unit, and units for each second of CPU."""
    rows = [
        f"`make bench`, {results.run}. All checks. A MB is of records before compression.",
        "",
        "| load | CPU of the proxy | a second of CPU is enough for |",
        "|---|---|---|",
    ]
    for load, words in _STREAMS.items():
        cost = results.of("ms CPU per MB", load)
        rows.append(f"| {words} | {cost:.2f} ms a MB | {1000 / cost:,.0f} MB/s |")
    cost = results.of("us CPU per request", _REQUESTS)
    rows.append(f"| {_REQUESTS} | {cost:.0f} µs a request | {1e6 / cost:,.0f} requests/s |")
    return "\n".join(rows)


def latency(results: Results) -> str:
    """The time of a Produce request, direct and through the proxy."""
    rows = [
        f"`make bench`, {results.run}.",
        "",
        f"| load | target | {' | '.join(_PERCENTILES)} |",
        "|---|---|---|---|---|",
    ]
    for load in _RATES:
        for target, words in (("direct", "the broker alone"), (_OURS, "through sluicegate, all checks")):
            values = " | ".join(f"{results.of(which, load, target):.2f} ms" for which in _PERCENTILES)
            rows.append(f"| {load} | {words} | {values} |")
    return "\n".join(rows)


def write() -> None:
    """Write all tables."""
    results = Results()
    for page in (DECISION, SIZING):
        fill_in(page, "capacity", capacity(results))
        fill_in(page, "latency", latency(results))


if __name__ == "__main__":
    write()
