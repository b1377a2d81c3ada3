"""Records the measured cases: each in bench/results/bounds.json, the costliest in reliability.md. `make bounds` writes
both.

A run replaces only the results of its own cases, so the measurement can be done in parts.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bounds.case import MIB
from tests.bounds.cases import ALL_CASES
from tests.bounds.measurement import CaseMeasurement
from tests.oracle.kafka_java import ROOT

PAGE = ROOT / "bench" / "results" / "reliability.md"
RESULTS = ROOT / "bench" / "results" / "bounds.json"
BEGIN, END = "<!-- written by make bounds: begin -->", "<!-- written by make bounds: end -->"
MEASURED: list[CaseMeasurement] = []

_COSTLIEST = 12
_HEAD = "| input | sent | connections | longest wait | idle neighbour | memory at most | kept | held |"
Results = Mapping[str, Mapping[str, Any]]


def result_row(measured: CaseMeasurement) -> dict[str, Any]:
    """Return the result of a case as the file has it."""
    return {
        "sent_bytes": measured.sent,
        "connections": measured.connections,
        "wait_ms": round(measured.longest_wait * 1000),
        "idle_wait_ms": round(measured.idle_wait * 1000),
        "same_load_elsewhere_ms": None if measured.baseline is None else round(measured.baseline * 1000),
        "memory_mib": round(measured.growth / MIB),
        "kept_mib": round(measured.left_bytes / MIB),
        "held": not measured.violations,
        "date": datetime.now(UTC).date().isoformat(),
    }


def merge_new_results(results: Results, measured: Iterable[CaseMeasurement]) -> Results:
    """Return the results after a run, in the order of the cases; those of cases that no longer exist are left out."""
    found = {**results, **{one.name: result_row(one) for one in measured}}
    return {case.name: found[case.name] for case in ALL_CASES if case.name in found}


def read_results() -> Results:
    """Return the results in the file."""
    results: Results = json.loads(RESULTS.read_text())
    return results


def write_results(results: Results) -> None:
    """Write the results, one case a line."""
    lines = (f" {json.dumps(name, ensure_ascii=False)}: {json.dumps(each)}" for name, each in results.items())
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def page_section(results: Results) -> str:
    """Return the part of the page between the markers."""
    held = sum(each["held"] for each in results.values())
    dates = sorted({each["date"] for each in results.values()})
    longest = sorted(results, key=lambda name: results[name]["wait_ms"], reverse=True)[:_COSTLIEST]
    largest = sorted(results, key=lambda name: results[name]["memory_mib"], reverse=True)[:_COSTLIEST]
    broken = [name for name, each in results.items() if not each["held"]]
    named = [name for name in results if name in {*longest, *largest, *broken}]
    rows = "\n".join(_row(name, results[name]) for name in named)
    return (
        f"{held} of {len(results)} measured cases stayed within the limits; {len(ALL_CASES)} cases exist. "
        f"Measured from {dates[0]} to {dates[-1]} on 2 cores by `make bounds`.\n\n"
        f"{_HEAD}\n|---|--:|--:|--:|--:|--:|--:|---|\n{rows}\n"
    )


def write_page(page: Path, results: Results) -> None:
    """Replace the part of the page between the markers."""
    first, _, rest = page.read_text().partition(BEGIN)
    _, _, last = rest.partition(END)
    page.write_text(f"{first}{BEGIN}\n{page_section(results)}{END}{last}")


def _row(name: str, each: Mapping[str, Any]) -> str:
    idle = "" if each["idle_wait_ms"] is None else f"{each['idle_wait_ms']} ms"
    return (
        f"| {name} | {_bytes(each['sent_bytes'])} | {each['connections']:,} | {each['wait_ms']} ms | {idle} "
        f"| {each['memory_mib']:+} MiB | {each['kept_mib']:+} MiB | {'yes' if each['held'] else '**no**'} |"
    )


def _bytes(count: int) -> str:
    for unit, size in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count / size:.0f} {unit}"
    return f"{count} B"
