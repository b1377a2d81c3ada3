"""Measures the CPU time, memory and descriptors of a process, current and peak."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.bounds.resident import proportional_bytes, status_bytes

# Reading smaps_rollup blocks the process for milliseconds. Doing so every second would affect one in a hundred of the
# small client's requests, and therefore its p99.
_EVERY_SECONDS = 4
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class HeldResources:
    """Resident and proportional memory (bytes), and descriptors."""

    resident: int
    proportional: int
    descriptors: int

    def at_least(self, other: "HeldResources") -> "HeldResources":
        """Return the higher value of each field."""
        return HeldResources(
            max(self.resident, other.resident),
            max(self.proportional, other.proportional),
            max(self.descriptors, other.descriptors),
        )


def resources_of(pid: int) -> HeldResources:
    """Return the current values."""
    return HeldResources(
        status_bytes(pid, "VmRSS"), proportional_bytes(pid), sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    )


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process since its start, user and system (s)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_SECONDS


class PeakResources:
    """Within `with`: the peak values of a process. Resident memory is the kernel's mark, the others are samples."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.held = HeldResources(0, 0, 0)

    def __enter__(self) -> Self:
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # resets VmHWM
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        mark = HeldResources(status_bytes(self._pid, "VmHWM"), 0, 0)
        self.held = self.held.at_least(resources_of(self._pid)).at_least(mark)

    def _look(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            self.held = self.held.at_least(resources_of(self._pid))
