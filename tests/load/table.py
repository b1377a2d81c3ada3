"""The table of docs/reliability.md, between two markers. Written by `make load`, never by hand."""

import os
import platform
from pathlib import Path

from tests.load.gauges import Held
from tests.load.measured import Measured
from tests.load.situations import MB
from tests.load.waits import p99_said

BEGIN, END = "<!-- written by make load: begin -->", "<!-- written by make load: end -->"
MEASURED: list[Measured] = []
_HEAD = (
    "| load | what came of it | processor | resident, MB | proportional, MB | descriptors | small client's p99: alone "
    "| beside | held |\n|---|---|--:|--:|--:|--:|--:|--:|---|"
)


def written(measured: list[Measured]) -> str:
    """A sentence and the table."""
    held = sum(not one.broken for one in measured)
    load, _, _ = os.getloadavg()
    said = (
        f"{held} of {len(measured)} held, on {os.cpu_count()} cores (Python {platform.python_version()}), at niceness "
        f"{os.nice(0)}, by `make load`. At the end {load:.1f} processes wanted to run, of this and of anything else "
        "on the machine."
    )
    return "\n".join([said, "", _HEAD, *map(_row, measured)])


def _row(one: Measured) -> str:
    alone = p99_said(one.alone)
    if one.elsewhere:
        alone += f"; load elsewhere: {p99_said(one.elsewhere)}"
    times: list[Held] = [one.before, one.top, one.after]
    cells = [
        one.name,
        one.remark,
        f"{one.processor:.1f} of {one.seconds:.0f} s",
        " / ".join(f"{held.resident / MB:.0f}" for held in times),
        " / ".join(f"{held.proportional / MB:.0f}" for held in times),
        " / ".join(f"{held.descriptors:,}" for held in times),
        alone,
        p99_said(one.beside),
        f"**no**: {'; '.join(one.broken)}" if one.broken else "yes",
    ]
    return f"| {' | '.join(cells)} |"


def write(file: Path) -> None:
    """Put this run's table in the place of the one before."""
    first, _, rest = file.read_text().partition(BEGIN)
    _, _, last = rest.partition(END)
    file.write_text(f"{first}{BEGIN}\n{written(MEASURED)}\n{END}{last}")
