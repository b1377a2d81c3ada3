"""Writes the table in bench/results/reliability.md, between two markers, for `make load`. Never edit it by hand."""

import os
import platform
from pathlib import Path

from tests.load.gauges import HeldResources
from tests.load.measured import SituationResult
from tests.load.situations import MB
from tests.load.waits import p99_text

BEGIN, END = "<!-- written by make load: begin -->", "<!-- written by make load: end -->"
MEASURED: list[SituationResult] = []
_HEAD = (
    "| load | outcome | processor | resident, MB | proportional, MB | descriptors | small client's p99: alone "
    "| beside | held |\n|---|---|--:|--:|--:|--:|--:|--:|---|"
)


def situation_table(measured: list[SituationResult]) -> str:
    """Return a summary sentence and the table."""
    held = sum(not one.broken for one in measured)
    load, _, _ = os.getloadavg()
    summary = (
        f"{held} of {len(measured)} held, on {os.cpu_count()} cores (Python {platform.python_version()}), at niceness "
        f"{os.nice(0)}, by `make load`. Load average of the machine at the end: {load:.1f}."
    )
    return "\n".join([summary, "", _HEAD, *map(_row, measured)])


def _row(one: SituationResult) -> str:
    alone = p99_text(one.alone)
    if one.elsewhere:
        alone += f"; load elsewhere: {p99_text(one.elsewhere)}"
    times: list[HeldResources] = [one.before, one.top, one.after]
    cells = [
        one.name,
        one.remark,
        f"{one.processor:.1f} of {one.seconds:.0f} s",
        " / ".join(f"{held.resident / MB:.0f}" for held in times),
        " / ".join(f"{held.proportional / MB:.0f}" for held in times),
        " / ".join(f"{held.descriptors:,}" for held in times),
        alone,
        p99_text(one.beside),
        f"**no**: {'; '.join(one.broken)}" if one.broken else "yes",
    ]
    return f"| {' | '.join(cells)} |"


def write(file: Path) -> None:
    """Replace the previous table by this run's."""
    first, _, rest = file.read_text().partition(BEGIN)
    _, _, last = rest.partition(END)
    file.write_text(f"{first}{BEGIN}\n{situation_table(MEASURED)}\n{END}{last}")
