"""Measures the current and the peak resident memory (bytes) of a process tree."""

import threading
from pathlib import Path

_EVERY_SECONDS = 0.01


def process_and_descendants(pid: int) -> list[int]:
    """Return the ids of a process and of all its descendants."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def status_bytes(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), 0)


def proportional_bytes(pid: int) -> int:
    """Return the proportional set size, in which shared pages count in part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def resident_bytes(pid: int) -> int:
    """Return VmRSS of one process; with workers, the sum of their proportional set sizes."""
    pids = process_and_descendants(pid)
    return status_bytes(pid, "VmRSS") if len(pids) == 1 else sum(map(proportional_bytes, pids))


class PeakMeter:
    """The peak between `begin` and `end`: the kernel's high-water mark for one process, otherwise samples."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._highest = 0
        self._thread: threading.Thread | None = None
        self._alone = True

    def begin(self) -> int:
        """Start measuring and return the current resident memory."""
        self._alone = len(process_and_descendants(self._pid)) == 1
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # resets VmHWM
        if not self._alone:
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()
        return resident_bytes(self._pid)

    def end(self) -> int:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        return max(self._highest, status_bytes(self._pid, "VmHWM") if self._alone else 0)

    def _sample(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            self._highest = max(self._highest, resident_bytes(self._pid))
