"""The table of docs/reliability.md, between two markers. Written by `make bounds`, never by hand."""

import os
import platform
from pathlib import Path

from tests.bounds.case import MIB
from tests.bounds.machine import slowness
from tests.bounds.measurement import Measured

BEGIN, END = "<!-- written by make bounds: begin -->", "<!-- written by make bounds: end -->"
MEASURED: list[Measured] = []

_HEAD = (
    "| input | sent | connections | others' longest wait | idle neighbour | same load elsewhere "
    "| memory at most | kept | held |"
)


def rows(measured: list[Measured]) -> str:
    lines = [_HEAD, "|---|--:|--:|--:|--:|--:|--:|--:|---|"]
    for one in measured:
        baseline = "" if one.baseline is None else f"{one.baseline * 1000:.0f} ms"
        lines.append(
            f"| {one.name} | {_bytes(one.sent)} | {one.connections:,} | {one.longest_wait * 1000:.0f} ms "
            f"| {one.idle_wait * 1000:.0f} ms | {baseline} "
            f"| {one.growth / MIB:+.0f} MiB | {one.left_bytes / MIB:+.0f} MiB "
            f"| {'**no**' if one.violations else 'yes'} |"
        )
    return "\n".join(lines)


def _bytes(count: int) -> str:
    for unit, size in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count / size:.0f} {unit}"
    return f"{count} B"


def write(file: Path, thorough: bool) -> None:
    """Replace the previous table by this run's."""
    text = file.read_text()
    first, _, rest = text.partition(BEGIN)
    _, _, last = rest.partition(END)
    held = sum(not one.violations for one in MEASURED)
    form = "`make bounds`" if thorough else "the short form in `make test` (fewer bytes, proxies shared by cases)"
    where = f"on {os.cpu_count()} cores (Python {platform.python_version()})"
    pace = ""
    if slowness() > 1:
        pace = f" The machine was {slowness():.1f} times slower than usual (a loop of sums)."
    summary = f"{held} of {len(MEASURED)} cases held, {where}, by {form}.{pace}"
    file.write_text(f"{first}{BEGIN}\n{summary}\n\n{rows(MEASURED)}\n{END}{last}")
