"""Writes the result of a soak in bench/results/reliability.md, between two markers. `make soak` writes it; do not edit
it by hand."""

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.slope import Slope

_MARK = "<!-- written by make soak{}: {} -->"


@dataclass(slots=True)
class SoakResult:
    """The outcome of a soak. `files`: number of configuration changes. `damaged`: number of damaged frames. `waits_ms`:
    median waits at the proxy and at the brokers."""

    minutes: float
    seed: int
    faults: int = 0
    files: int = 0
    damaged: int = 0
    stored: int = 0
    committed: int = 0
    rejected: int = 0
    samples: int = 0
    waits_ms: tuple[float, float] = (0.0, 0.0)
    slopes: dict[str, Slope] = field(default_factory=dict)

    @property
    def over_tls(self) -> bool:
        """Return whether clients use TLS; the seed decides."""
        return self.seed % 2 == 0

    def summary(self) -> str:
        """Return a summary sentence and the table."""
        tls = ", clients over TLS" if self.over_tls else ""
        rows = [f"| {what} | {slope.per_hour:+.1f} | {slope.error:.1f} |" for what, slope in self.slopes.items()]
        return "\n".join(
            [
                f"{self.minutes:g} minutes (seed {self.seed}{tls}), on {os.cpu_count()} cores (Python "
                f"{platform.python_version()}), by `make soak`: {self.faults:,} faults, "
                f"{self.files:,} configuration changes, {self.damaged:,} damaged frames. "
                f"{self.stored:,} records acknowledged and {self.committed:,} "
                f"committed, all of them stored, in order, once; {self.rejected:,} bad records rejected, none stored. "
                f"One record was stored within {self.waits_ms[0]:.1f} ms (median) through two relays and the proxy, "
                f"within {self.waits_ms[1]:.1f} ms at the brokers. {self.samples:,} samples; the slopes leave out "
                "the first fifth:",
                "",
                "| of the proxy, two workers | an hour | standard error |",
                "|---|--:|--:|",
                *rows,
            ]
        )


def write_report(file: Path, soaked: SoakResult) -> None:
    """Replace the previous result with the same kind of connection, TLS or plain."""
    begin, end = (_MARK.format(", over TLS" if soaked.over_tls else "", which) for which in ("begin", "end"))
    first, _, rest = file.read_text().partition(begin)
    _, _, last = rest.partition(end)
    file.write_text(f"{first}{begin}\n{soaked.summary()}\n{end}{last}")
