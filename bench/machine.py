"""Measures CPU and memory of processes (with Linux's /proc), now and at the peak, and describes the machine."""

import contextlib
import os
import platform
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far and resident bytes now. A page that several processes share counts once."""

    cpu_seconds: float
    resident_bytes: int


def usage_of(pids: Sequence[int]) -> Usage:
    """Return the usage of processes, including their ended threads."""
    cpu, resident = 0.0, 0
    for pid in pids:
        cpu += time.clock_gettime(_cpu_clock_of(pid))
        resident += resident_of(pid) if len(pids) == 1 else share_of(pid)
    return Usage(cpu, resident)


def resident_of(pid: int) -> int:
    """Return the bytes of a process's pages that are in memory, shared or not."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def share_of(pid: int) -> int:
    """Return the proportional set size in bytes, in which a page that n processes share counts as 1/n."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _cpu_clock_of(pid: int) -> int:
    """Return the clock that clock_getcpuclockid(3) names.

    It counts nanoseconds, while /proc counts hundredths of a second.
    """
    return ~pid << 3 | 2


def with_children(pid: int) -> list[int]:
    """Return a process and all its descendants, no matter which of its threads started them."""
    children = [child for thread in Path(f"/proc/{pid}/task").iterdir() for child in _started_by(thread)]
    return [pid, *(below for child in children for below in with_children(child))]


def _started_by(thread: Path) -> list[int]:
    try:
        return [int(child) for child in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []  # the process has ended


def confine(pid: int, cores: int) -> None:
    """Keep a process, its descendants and the processes that they will start on the first of the machine's cores."""
    some = set(range(cores))
    for process in with_children(pid):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # the process has ended
                os.sched_setaffinity(int(thread.name), some)


def busy_seconds() -> float:
    """Return the CPU seconds that all cores of the machine have spent."""
    user, nice, system, _idle, _iowait, irq, softirq, _steal = (
        int(field) / _TICK for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return user + nice + system + irq + softirq


def wait_until_quiet(cores: float = 0.3, at_most_seconds: float = 20) -> None:
    """Return when the machine has used fewer than `cores` cores for a while, or when the time is up."""
    end = time.monotonic() + at_most_seconds
    while time.monotonic() < end:
        before, since = busy_seconds(), time.monotonic()
        time.sleep(0.5)  # the duration of the measurement
        if (busy_seconds() - before) / (time.monotonic() - since) < cores:
            return


def describe() -> dict[str, object]:
    """Return a description of the machine for the results."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cores": os.cpu_count(),
        "cpu": model[1] if model else "?",
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class Peaks:
    """The peak resident memory of the pipeline's processes in bytes.

    The processes are the driver's Python process, which is this process; its JVM, which in a local session is also the
    executor; and all Python workers together.
    """

    driver: int = 0
    jvm: int = 0
    workers: int = 0

    def sample_usage(self) -> None:
        """Measure once more, and update the peaks."""
        jvm = workers = 0
        for pid in with_children(os.getpid())[1:]:
            if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
                jvm += resident_of(pid)
            else:
                workers += resident_of(pid)
        self.driver = max(self.driver, resident_of(os.getpid()))
        self.jvm, self.workers = max(self.jvm, jvm), max(self.workers, workers)


@contextmanager
def peaks() -> Iterator[Peaks]:
    """Yield the peak memory of the block's processes, which is available after the block."""
    found, over = Peaks(), Event()

    def watch() -> None:
        while not over.wait(_EVERY_SECONDS):
            try:
                found.sample_usage()
            except (FileNotFoundError, ProcessLookupError):
                continue  # the process has ended in the meantime

    watching = Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()
