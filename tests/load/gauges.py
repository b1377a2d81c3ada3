"""What a process holds and has used: processor time, memory and descriptors, at a moment and at the top."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.bounds.resident import proportional_bytes, status_bytes

# Looking at a process's pages holds it up for milliseconds. Once a second would be the hundredth of a small client's
# requests that its p99 tells of.
_EVERY_SECONDS = 4
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Held:
    """Resident and proportional memory (bytes), and descriptors."""

    resident: int
    proportional: int
    descriptors: int

    def at_least(self, other: "Held") -> "Held":
        """The higher of each."""
        return Held(
            max(self.resident, other.resident),
            max(self.proportional, other.proportional),
            max(self.descriptors, other.descriptors),
        )


def held_by(pid: int) -> Held:
    """At this moment."""
    return Held(status_bytes(pid, "VmRSS"), proportional_bytes(pid), sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


def processor_seconds(pid: int) -> float:
    """That a process has used since its start, in user mode and for the system's calls."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


class Top:
    """Within `with`: the highest that a process held. Resident memory by the system's own mark, the rest by looks."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.held = Held(0, 0, 0)

    def __enter__(self) -> Self:
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # VmHWM begins anew
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        mark = Held(status_bytes(self._pid, "VmHWM"), 0, 0)
        self.held = self.held.at_least(held_by(self._pid)).at_least(mark)

    def _look(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            self.held = self.held.at_least(held_by(self._pid))
