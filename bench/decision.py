"""Selects the figures that a reader needs for a decision from bench/results.

Run: python -m bench.decision. Writes the tables in docs/how-to/sizing.md and their summary in docs/is-it-for-me.md.
`make bench` runs it after its measurements.
"""

import json
import textwrap
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
    """The medians of the last `make bench`, and the run that measured them."""

    def __init__(self, folder: Path = RESULTS) -> None:
        figures: list[dict[str, Any]] = json.loads((folder / "bench.json").read_text())
        self._values: Mapping[tuple[str, str], float] = {(row["figure"], row["load"]): row["value"] for row in figures}
        raw: dict[str, Any] = json.loads((folder / "raw.json").read_text())
        machine = raw["machine"]
        self._runs: list[dict[str, Any]] = raw["runs"]
        self.run = (
            f"{raw['day']}, {machine['cores']} cores ({machine['cpu']}) shared with broker and clients, "
            f"Kafka {raw['kafka']}, Python {machine['python']}"
        )

    def of(self, figure: str, load: str, target: str = _OURS) -> float:
        """Return a median. Raises KeyError if it was not measured."""
        return self._values[f"{figure} through {target}", load]

    def rounds(self, load: str) -> tuple[float, float]:
        """Return the lowest and the highest median time of a round, without and with the proxy."""
        runs = [run for run in self._runs if run["load"] == load and run["target"] in ("direct", _OURS)]
        medians = [run["latencies"]["p50"] for run in runs]
        return min(medians), max(medians)


def capacity(results: Results) -> str:
    """Return the table of the load that one core can carry: the CPU of a unit, and the units per second of CPU."""
    rows = [
        _paragraph(f"`make bench`, {results.run}. The proxy applies all checks. A MB is of uncompressed records."),
        "",
        "| load | CPU of the proxy | one core carries |",
        "|---|---|---|",
    ]
    for load, words in _STREAMS.items():
        cost = results.of("ms CPU per MB", load)
        rows.append(f"| {words} | {cost:.2f} ms/MB | {1000 / cost:,.0f} MB/s |")
    cost = results.of("us CPU per request", _REQUESTS)
    rows.append(f"| {_REQUESTS} | {cost:.0f} µs/request | {1e6 / cost:,.0f} requests/s |")
    return "\n".join(rows)


def latency(results: Results) -> str:
    """Return the table of the time of a Produce request, direct and through the proxy."""
    rows = [
        _paragraph(f"`make bench`, {results.run}."),
        "",
        f"| load | target | {' | '.join(_PERCENTILES)} |",
        "|---|---|---|---|---|",
    ]
    for load in _RATES:
        for target, words in (("direct", "the broker alone"), (_OURS, "through sluicegate, all checks")):
            values = " | ".join(f"{results.of(which, load, target):.2f} ms" for which in _PERCENTILES)
            rows.append(f"| {load} | {words} | {values} |")
    ranges = ["{:.2f} to {:.2f} ms at ".format(*results.rounds(load)) + load for load in _RATES]
    rows += ["", _paragraph(f"The p50 of single rounds, without and with the proxy, was {' and '.join(ranges)}.")]
    return "\n".join(rows)


def summary(results: Results) -> str:
    """Return one sentence with the range of the first table, and one with the medians of the second table."""
    rates = sorted(1000 / results.of("ms CPU per MB", load) for load in _STREAMS)
    requests = 1e6 / results.of("us CPU per request", _REQUESTS)
    load = _RATES[1]
    without, through = results.of("p50", load, "direct"), results.of("p50", load)
    return _paragraph(
        f"In the last benchmark one core carried {rates[0]:,.0f} to {rates[-1]:,.0f} MB/s of records, depending on "
        f"their size and compression, or {requests:,.0f} requests/s with one record each. At {load} the median time "
        f"of a Produce request was {without:.2f} ms without the proxy and {through:.2f} ms with it."
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def write() -> None:
    """Write the tables and their summary."""
    results = Results()
    fill_in(DECISION, "cost", summary(results))
    fill_in(SIZING, "capacity", capacity(results))
    fill_in(SIZING, "latency", latency(results))


if __name__ == "__main__":
    write()
