"""Starts the rules process, sends it one request at a time, and ends it. Only one thread may use it."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from time import monotonic

from sluicegate.proxy.rules_process.messages import (
    EvaluationRequest,
    EvaluationResponse,
    EvaluatorKind,
    NoResponse,
    ResponseOutcome,
    encoded_request,
    received_response,
)

# Importing libraries from disk may take this long on a busy machine.
_START_SECONDS = 60.0
# A process closes its pipes shortly before its exit code is available.
_END_SECONDS = 1.0
_BEGIN = (
    "import sys; sys.path[:] = {path!r}; from sluicegate.proxy.rules_process.host import main; "
    "main({questions}, {responses}, {kinds!r}, {memory})"
)


class ProcessEnded(Exception):
    """The process ended during a request that did not cause this. The message gives the details."""


@dataclass(frozen=True, slots=True)
class OverBudget(Exception):
    """A request exceeded its CPU time, or its memory if `is_memory` is true."""

    is_memory: bool


class EvaluationProcess:
    """A process that can compile rules of `kinds`.

    `memory` is the number of bytes that the process may map beyond its libraries.
    """

    def __init__(self, kinds: frozenset[EvaluatorKind], memory: int) -> None:
        """Start the process. Raises ProcessEnded."""
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
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
        command = [sys.executable, *flags, "-c", code]
        os.set_blocking(there, False)
        self._there, self._here = FileIO(there, "w"), FileIO(here, "r")
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the command is this program
                command, pass_fds=[questions, responses], stdin=subprocess.DEVNULL, process_group=0
            )
        except OSError as error:
            self._there.close()
            self._here.close()
            raise ProcessEnded(f"it does not start: {error.strerror}") from error
        finally:
            os.close(questions)
            os.close(responses)
        self._is_ready = False
        self.has_ended = False

    @property
    def pid(self) -> int:
        """The host's process id. The evaluator is a child of the host."""
        return self._process.pid

    def ask(self, request: EvaluationRequest, most_seconds: float) -> Iterator[EvaluationResponse]:
        """Send a request and yield its responses, within at most `most_seconds` of wall-clock time.

        Raises OverBudget and ProcessEnded. If `has_ended` is true, the process cannot be used again.
        """
        if not self._is_ready:
            self._response(monotonic() + _START_SECONDS)
            self._is_ready = True
        end = monotonic() + most_seconds
        with suppress(BrokenPipeError):  # the response gives the reason for the failure
            self._send(encoded_request(request), end)
        is_last = False
        while not is_last:
            response = self._response(end)
            if response.outcome is ResponseOutcome.ENDED:
                self.has_ended = response.is_final
                if response.is_memory or response.signal == signal.SIGPROF:
                    raise OverBudget(response.is_memory)
                raise ProcessEnded(_how(response.signal, response.code))
            yield response
            is_last = response.is_last

    def read_unrequested(self) -> None:
        """Read what the process reports without a request.

        Raises ProcessEnded if the host or the evaluator has ended.
        """
        while self._is_readable():
            response = self._response(monotonic())
            if response.outcome is ResponseOutcome.ENDED:
                self.has_ended = True
                raise ProcessEnded(_how(response.signal, response.code))
            self._is_ready = True

    def _is_readable(self) -> bool:
        poll = select.poll()
        poll.register(self._here.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def kill(self) -> None:
        """Kill the process. Any thread may call this method. A pending request raises ProcessEnded."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process and release its resources."""
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

    def _response(self, end: float) -> EvaluationResponse:
        self._wait(self._here.fileno(), select.POLLIN, end)
        try:
            return received_response(self._here)
        except NoResponse:
            self.has_ended = True
            raise ProcessEnded(self._how_it_ended()) from None

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it has ended"
        return _how(max(0, -code), max(0, code))

    def _wait(self, descriptor: int, until: int, end: float) -> None:
        poll = select.poll()
        poll.register(descriptor, until)
        if not poll.poll(max(0.0, end - monotonic()) * 1000):
            self.has_ended = True
            raise ProcessEnded("it does not respond, and was ended")


Start = Callable[[frozenset[EvaluatorKind], int], EvaluationProcess]


def _how(ended_by: int, code: int) -> str:
    if not ended_by:
        return f"it has ended with code {code}"
    with suppress(ValueError):
        return f"it was ended by {signal.Signals(ended_by).name}"
    return f"it was ended by signal {ended_by}"
