"""Counts the instructions that a live process and its threads retire in user mode, with perf or callgrind.

Unlike seconds, instructions hardly depend on other load. perf needs the processor's counters, which many virtual
machines hide. callgrind does not need them, but it must start the process itself, which then runs about fifty times
slower.
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
    """A way to count the instructions of a process."""

    name: str
    prefix: list[str]
    """The prefix of the command that starts the process."""
    environment: dict[str, str]
    """Additional environment variables of the process."""
    is_slow: bool
    """Whether the process runs much slower than usual."""

    def count(self, pid: int, work: Callable[[], None]) -> int:
        """Return the instructions of the process during `work`."""


class Perf:
    """Counts with the processor's own counter."""

    name = "perf stat -e instructions:u"
    is_slow = False

    def __init__(self) -> None:
        self.prefix: list[str] = []
        self.environment: dict[str, str] = {}

    def count(self, pid: int, work: Callable[[], None]) -> int:
        """Return the instructions of the process during `work`. Raises RuntimeError if perf counts nothing."""
        with tempfile.NamedTemporaryFile() as file:
            command = ["perf", "stat", "-x", ",", "-e", _EVENT, "-o", file.name, "-p", str(pid)]
            with subprocess.Popen(command) as perf:
                work()
                perf.send_signal(signal.SIGINT)
            return instructions_in(Path(file.name).read_text())


class Callgrind:
    """Counts with Valgrind's callgrind."""

    name = "callgrind"
    is_slow = True

    def __init__(self, folder: Path) -> None:
        """Take the folder for callgrind's files. The last file is the profile of the last measurement."""
        self._out = folder / "callgrind.out"
        options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={self._out}.%p", "--quiet"]
        self.prefix = ["valgrind", *options]
        # callgrind counts a copy with `rep movsb` as one instruction per byte, but the processor counts it as one
        # instruction.
        self.environment = {"GLIBC_TUNABLES": f"glibc.cpu.x86_rep_movsb_threshold={1 << 30}"}

    def count(self, pid: int, work: Callable[[], None]) -> int:
        """Return the instructions of the process during `work`.

        Raises RuntimeError if the process does not run under callgrind.
        """
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
    """Return perf's counter if it works, otherwise callgrind's counter with files in `folder`. Raises RuntimeError."""
    try:
        completed = subprocess.run(
            ["perf", "stat", "-x", ",", "-e", _EVENT, "true"], capture_output=True, text=True, check=False
        ).stderr
        instructions_in(completed)
    except (OSError, RuntimeError) as error:
        if which("callgrind_control") is None:
            raise RuntimeError(f"instructions are counted by perf, which says {error}, or by valgrind") from error
        return Callgrind(folder)
    return Perf()


def instructions_in(text: str) -> int:
    """Return the count in the output of `perf stat -x ,`. Raises RuntimeError if there is none."""
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2].startswith("instructions") and fields[0].isdigit():
            return int(fields[0])
    raise RuntimeError(f"perf counts no instructions here: {text.strip()}")
