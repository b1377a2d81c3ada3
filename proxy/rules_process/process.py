"""The rules process as the proxy sees it: start it, send one request at a time, end it. For one thread."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from time import monotonic

from sluicegate.proxy.rules_process.messages import (
    Kind,
    NoResponse,
    Outcome,
    Question,
    Response,
    pieces_of,
    received_response,
)

# Libraries are loaded from disk, on a machine that may be busy.
_START_SECONDS = 60.0
_BEGIN = (
    "import sys; sys.path[:] = {path!r}; from sluicegate.proxy.rules_process.host import main; "
    "main({questions}, {responses}, {kinds!r}, {memory})"
)


class Ended(Exception):
    """The process has ended, or was ended, within a question: by no fault of what it was asked. The text says how."""


@dataclass(frozen=True, slots=True)
class OverBudget(Exception):
    """A question took more CPU time, or more memory (`is_memory`), than it may."""

    is_memory: bool


class EvaluationProcess:
    """A process that can make rules of `kinds`. `memory`: bytes that it may map beyond what its libraries take."""

    def __init__(self, kinds: frozenset[Kind], memory: int) -> None:
        """Raises Ended."""
        self.kinds = kinds
        questions, there = os.pipe()
        here, responses = os.pipe()
        code = _BEGIN.format(
            path=sys.path,
            questions=questions,
            responses=responses,
            kinds=sorted(kind.value for kind in kinds),
            memory=memory,
        )
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing starts its own
        command = [sys.executable, *flags, "-c", code]
        os.set_blocking(there, False)
        self._there, self._here = FileIO(there, "w"), FileIO(here, "r")
        try:
            self._process = subprocess.Popen(  # noqa: S603  # ourselves
                command, pass_fds=[questions, responses], stdin=subprocess.DEVNULL, process_group=0
            )
        except OSError as error:
            self._there.close()
            self._here.close()
            raise Ended(f"it does not start: {error.strerror}") from error
        finally:
            os.close(questions)
            os.close(responses)
        self._is_ready = False
        self.has_ended = False

    @property
    def pid(self) -> int:
        """Of the program that was started, whose child evaluates."""
        return self._process.pid

    def ask(self, question: Question, data: bytes, most_seconds: float) -> Response:
        """What comes of a question, `most_seconds` (of the clock on the wall) later at most.

        Raises OverBudget, and Ended; where `has_ended`, the process is of no more use.
        """
        if not self._is_ready:
            self._response(monotonic() + _START_SECONDS)
            self._is_ready = True
        end = monotonic() + most_seconds
        with suppress(BrokenPipeError):  # the response says why
            self._send(pieces_of(question, data), end)
        response = self._response(end)
        if response.outcome is not Outcome.ENDED:
            return response
        self.has_ended = response.is_final
        if response.is_memory or response.signal == signal.SIGPROF:
            raise OverBudget(response.is_memory)
        raise Ended(_how(response.signal, response.code))

    def kill(self) -> None:
        """Whatever it is doing, from any thread; what it was asked raises Ended."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill it, and give back what it has taken."""
        self.kill()
        self._there.close()
        self._here.close()
        self._process.wait()

    def _send(self, pieces: list[bytes], end: float) -> None:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                self._wait(self._there.fileno(), select.POLLOUT, end)
                view = view[self._there.write(view) or 0 :]

    def _response(self, end: float) -> Response:
        self._wait(self._here.fileno(), select.POLLIN, end)
        try:
            return received_response(self._here)
        except NoResponse:
            self.has_ended = True
            raise Ended("it has ended") from None

    def _wait(self, descriptor: int, until: int, end: float) -> None:
        poll = select.poll()
        poll.register(descriptor, until)
        if not poll.poll(max(0.0, end - monotonic()) * 1000):
            self.has_ended = True
            raise Ended("it does not respond, and was ended")


Start = Callable[[frozenset[Kind], int], EvaluationProcess]


def _how(ended_by: int, code: int) -> str:
    if not ended_by:
        return f"it has ended with code {code}"
    with suppress(ValueError):
        return f"it was ended by {signal.Signals(ended_by).name}"
    return f"it was ended by signal {ended_by}"
