"""Counts the instructions that a live process retires in user mode, its threads included: perf's, or callgrind's.

Unlike seconds they hardly depend on who else is busy. perf needs the processor's counters, which many virtual machines
hide; callgrind needs none, but the process has to be started under it, and runs some fifty times slower.
"""

import re
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Protocol

_EVENT = "instructions:u"
_SUMMARY = re.compile(r"^summary: (\d+)$", re.MULTILINE)


class Counter(Protocol):
    """How instructions of a process are counted."""

    name: str
    prefix: list[str]
    """What stands before the command that starts the process."""
    environment: dict[str, str]
    """What the process is given beside that."""
    is_slow: bool
    """Whether time passes for the process as if the machine were slow."""

    def count(self, pid: int, work: Callable[[], None]) -> int:
        """Instructions of the process while `work` runs here."""


class Perf:
    """The processor's own counter."""

    name = "perf stat -e instructions:u"
    is_slow = False

    def __init__(self) -> None:
        self.prefix: list[str] = []
        self.environment: dict[str, str] = {}

    def count(self, pid: int, work: Callable[[], None]) -> int:
        """Raises RuntimeError when perf counts nothing."""
        with tempfile.NamedTemporaryFile() as file:
            command = ["perf", "stat", "-x", ",", "-e", _EVENT, "-o", file.name, "-p", str(pid)]
            with subprocess.Popen(command) as perf:
                work()
                perf.send_signal(signal.SIGINT)
            return instructions_in(Path(file.name).read_text())


class Callgrind:
    """Valgrind's."""

    name = "callgrind"
    is_slow = True

    def __init__(self, folder: Path) -> None:
        """`folder` is for its files; the last file is the profile of what was counted last."""
        self._out = folder / "callgrind.out"
        options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={self._out}.%p", "--quiet"]
        self.prefix = ["valgrind", *options]
        # A copy that is one instruction to a processor (rep movsb) is one for each byte to callgrind.
        self.environment = {"GLIBC_TUNABLES": f"glibc.cpu.x86_rep_movsb_threshold={1 << 30}"}

    def count(self, pid: int, work: Callable[[], None]) -> int:
        """Raises RuntimeError when the process is not under callgrind."""
        before = set(self._out.parent.glob(f"{self._out.name}.{pid}.*"))
        self._control(pid, "-i", "on")
        self._control(pid, "-z")
        work()
        self._control(pid, "-d")
        self._control(pid, "-i", "off")
        (dumped,) = set(self._out.parent.glob(f"{self._out.name}.{pid}.*")) - before
        found = _SUMMARY.search(dumped.read_text())
        if found is None:
            raise RuntimeError(f"{dumped} has no summary")
        return int(found[1])

    def _control(self, pid: int, *what: str) -> None:
        command = ["callgrind_control", *what, str(pid)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        if said.returncode != 0 or "OK." not in said.stdout:
            raise RuntimeError(f"{' '.join(command)}: {said.stdout}{said.stderr}")


def counter(folder: Path) -> Counter:
    """That of perf where it counts, else callgrind's with its files in `folder`. Raises RuntimeError without either."""
    try:
        told = subprocess.run(
            ["perf", "stat", "-x", ",", "-e", _EVENT, "true"], capture_output=True, text=True, check=False
        ).stderr
        instructions_in(told)
    except (OSError, RuntimeError) as error:
        if which("callgrind_control") is None:
            raise RuntimeError(f"instructions are counted by perf, which says {error}, or by valgrind") from error
        return Callgrind(folder)
    return Perf()


def instructions_in(text: str) -> int:
    """What `perf stat -x ,` has told. Raises RuntimeError where it counted none."""
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2].startswith("instructions") and fields[0].isdigit():
            return int(fields[0])
    raise RuntimeError(f"perf counts no instructions here: {text.strip()}")
