"""Has the configuration read in another process, which ends when it has told what it found.

What reads (YAML, pydantic, the command line, certificates) is megabytes that a proxy would hold for as long as it runs.
Here is what is asked of that process, and what it answers; `proxy/process/reader.py` is the process.
"""

import pickle
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sluicegate.config.model import Config
from sluicegate.config.sending import sent_often
from sluicegate.proxy.process.config_file import ConfigFile

_BEGIN = "import sys; sys.path[:] = {path!r}; from sluicegate.proxy.process.reader import main; main({descriptor})"


@dataclass(frozen=True, slots=True)
class Start:
    """A question: what the arguments of the command line say shall be run. The reader tells its user what is wrong."""

    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Again:
    """A question: what the file says now."""

    file: ConfigFile


@dataclass(frozen=True, slots=True)
class Explain:
    """A question: what the file says now of a topic."""

    file: ConfigFile
    topic: str


@dataclass(frozen=True, slots=True)
class Explained:
    """Lines for a person."""

    lines: tuple[str, ...]


@sent_often
@dataclass(frozen=True, slots=True)
class Usable:
    """The configuration, the file that it came from as it was when it was read, and what its writer should know."""

    config: Config
    file: ConfigFile | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why the file cannot be taken, problem by problem."""

    file: ConfigFile
    problems: tuple[str, ...]


class ReaderEnded(Exception):
    """The reader has ended without an answer."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"the process that reads the configuration has ended with {exit_code}")
        self.exit_code = exit_code


class ReaderSilent(Exception):
    """The reader did not answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the configuration was not read within {seconds:.0f} s: do all files that it names respond?")


class Reader:
    """A process that reads, from now on. It shows what it has to show where this one does."""

    def __init__(self, question: Start | Again | Explain) -> None:
        self._here, there = socket.socketpair()
        code = _BEGIN.format(path=sys.path, descriptor=there.fileno())
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing starts its own
        with there:
            command = [sys.executable, *flags, "-c", code]
            self._process = subprocess.Popen(command, pass_fds=[there.fileno()])  # noqa: S603  # ourselves
        with suppress(OSError):  # it has ended, and leaves the question without an answer
            send(self._here, question)

    def answer(self, seconds: float | None = None) -> Usable | Unusable | Explained:
        """Blocks until it is there, for at most `seconds`. Raises ReaderEnded and ReaderSilent."""
        with self._here:
            self._here.settimeout(seconds)
            try:
                answer = received(self._here)
            except TimeoutError:
                self._process.kill()
                raise ReaderSilent(seconds or 0) from None
            except (EOFError, OSError, pickle.UnpicklingError):  # it ended before, or within
                answer = None
        code = self._process.wait()
        if not isinstance(answer, Usable | Unusable | Explained):
            raise ReaderEnded(code)
        return answer


def send(there: socket.socket, what: object) -> None:
    """Once in each direction. Raises OSError."""
    there.sendall(pickle.dumps(what))


def received(there: socket.socket) -> Any:
    """What the other side, which is ourselves, has sent. Raises EOFError, OSError and UnpicklingError."""
    with there.makefile("rb") as file:
        return pickle.load(file)  # noqa: S301
