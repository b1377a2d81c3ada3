"""Writes the table in bench/results/reliability.md, between two markers, and a line for each run.

`make faults` writes it; do not edit it by hand.
"""

import os
import platform
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.faults.faults import Plan, plan_of

BEGIN, END = "<!-- written by make faults: begin -->", "<!-- written by make faults: end -->"
OUTCOME = "outcome"
"""The property of a test report that contains the outcome."""
_HEAD = "| fault | times | longest recovery |\n|---|--:|--:|"


@dataclass(slots=True)
class RunOutcome:
    """The outcome of a run. `recoveries`: time from the end of each round until all clients made progress (s)."""

    plan: Plan
    recoveries: list[float] = field(default_factory=list)
    acknowledged: int = 0
    committed: int = 0
    commits: int = 0
    aborts: int = 0
    rejected: int = 0
    hits: int = 0
    held: bool = False
    trouble: str = ""
    """The failure, if the proxy did not pass the run."""

    def as_properties(self) -> dict[str, Any]:
        """Return the outcome as values that can be sent to another process."""
        return asdict(self) | {"plan": self.plan.seed}

    @classmethod
    def from_properties(cls, values: dict[str, Any]) -> Self:
        """Return the outcome from the values of `as_properties`."""
        return cls(**values | {"plan": plan_of(values["plan"])})

    def summary(self) -> str:
        faults = "; then ".join(" with ".join(fault.name for fault in together) for together in self.plan.rounds)
        tls = " over TLS" if self.plan.over_tls else ""
        end = (
            "" if self.held else f"\n  NOT HELD: {self.trouble}\n  Once more: make faults RUNS=1 SEED={self.plan.seed}"
        )
        return (
            f"seed {self.plan.seed}, {self.plan.workers} worker(s){tls}: {faults} | {self.acknowledged} records "
            f"acknowledged, {self.committed} in {self.commits} transactions, {self.rejected} bad records rejected, "
            f"{self.hits} faults of relays, "
            f"longest recovery {max(self.recoveries, default=0):.1f} s{end}"
        )


OUTCOMES: list[RunOutcome] = []
"""The outcomes in this process and in the test processes that it started."""


def fault_table(outcomes: list[RunOutcome], side_by_side: int) -> str:
    """Return a summary sentence and the table. `side_by_side`: the number of parallel runs."""
    held = sum(outcome.held for outcome in outcomes)
    seeds = [outcome.plan.seed for outcome in outcomes]
    over_tls = sum(outcome.plan.over_tls for outcome in outcomes)
    slowest = max(outcomes, key=lambda outcome: max(outcome.recoveries, default=0))
    acknowledged = sum(outcome.acknowledged + outcome.committed for outcome in outcomes)
    summary = (
        f"{held} of {len(outcomes)} runs held (seeds {min(seeds)} to {max(seeds)}; clients of {over_tls} used "
        f"TLS), on {os.cpu_count()} cores (Python "
        f"{platform.python_version()}), {side_by_side} at a time, by `make faults`. "
        f"{acknowledged:,} records acknowledged or committed; "
        f"{sum(outcome.commits for outcome in outcomes):,} transactions committed, "
        f"{sum(outcome.aborts for outcome in outcomes):,} aborted; "
        f"{sum(outcome.rejected for outcome in outcomes):,} bad records rejected. Faults of relays: "
        f"{sum(outcome.hits for outcome in outcomes):,}. Longest recovery: "
        f"{max(slowest.recoveries, default=0):.1f} s (seed {slowest.plan.seed})."
    )
    times: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for together, seconds in zip(outcome.plan.rounds, outcome.recoveries, strict=False):
            for fault in together:
                times[fault.name].append(seconds)
    rows = [f"| {name} | {len(seconds)} | {max(seconds):.1f} s |" for name, seconds in sorted(times.items())]
    return "\n".join([summary, "", _HEAD, *rows])


def write_table(file: Path, side_by_side: int) -> None:
    """Replace the previous table by the table of these runs."""
    first, _, rest = file.read_text().partition(BEGIN)
    _, _, last = rest.partition(END)
    file.write_text(f"{first}{BEGIN}\n{fault_table(OUTCOMES, side_by_side)}\n{END}{last}")
