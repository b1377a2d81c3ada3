"""The main program of the rules process.

It loads libraries and forks the evaluator, which evaluates rules. If an evaluator ends, the host replaces it within
milliseconds, without importing libraries again. The host has no other task, has only one thread, and never handles
clients' data.
"""

import ctypes
import gc
import os
import signal
import sys
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NoReturn

from sluicegate.proxy.rules_process.evaluator import NO_ROOM_TO_READ, OUT_OF_MEMORY, WORN_OUT, Evaluator, load_libraries
from sluicegate.proxy.rules_process.messages import EvaluationResponse, EvaluatorKind, ResponseOutcome, send_response

_STDOUT, _STDERR = 1, 2
_MOST_SAID_BYTES = 64 << 10
# Messages that libraries print before they abort for lack of memory. In a Rust library, a C++ library's bad_alloc
# appears as "foreign". The loader ends the process with its own exit code.
_OF_MEMORY = (
    b"memory allocation of", b"bad_alloc", b"out of memory", b"Out of memory", b"cannot allocate memory",
    b"Rust cannot catch foreign exceptions",
)  # fmt: skip
_LOADER_FAILED = 127
_PR_SET_PDEATHSIG = 1


def main(questions: int, responses: int, kinds: list[str], memory: int) -> NoReturn:
    """Run the host. `questions` and `responses` are descriptors of pipes.

    `memory` is the number of bytes that an evaluator may map beyond its current size.
    """
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends SIGINT too, but the proxy ends this process
    here, there = FileIO(questions, "r"), FileIO(responses, "w")
    load_libraries(frozenset(EvaluatorKind(kind) for kind in kinds))
    said = _take_standard_error()
    gc.collect()
    gc.freeze()  # objects that exist now stay unchanged and are shared with evaluators
    with suppress(OSError):  # the proxy may have stopped reading
        send_response(there, EvaluationResponse(ResponseOutcome.DONE))  # reports that the host is ready
        while (code := _evaluated(here, there, memory)) != 0:
            words = _read_all(said)
            is_memory = code in (OUT_OF_MEMORY, NO_ROOM_TO_READ) or (
                code in (-signal.SIGABRT, _LOADER_FAILED) and any(word in words for word in _OF_MEMORY)
            )
            # After NO_ROOM_TO_READ and all other exits, part of a request may still be in the pipe.
            is_final = code == NO_ROOM_TO_READ or not (is_memory or code in (-signal.SIGPROF, WORN_OUT))
            if code != WORN_OUT:
                by, with_code = max(0, -code), max(0, code)
                send_response(
                    there, EvaluationResponse(ResponseOutcome.ENDED, None, 0, 0, by, with_code, is_memory, is_final)
                )
            if is_final:
                break
    os._exit(0)


def _evaluated(here: FileIO, there: FileIO, memory: int) -> int:
    """Fork an evaluator and wait for it. Return its exit code, or the negated number of the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _end_with_parent()
            code = Evaluator(here, there, memory).run()
        except OSError:
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _end_with_parent() -> None:
    """Make Linux end this process together with its parent.

    On other systems the process ends when its pipe is closed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _take_standard_error() -> int:
    """Redirect standard error to a non-blocking pipe, away from the proxy's log. Return the end to read from."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    nothing = Path(os.devnull).open("w")  # noqa: SIM115  # for as long as the process runs
    sys.stdout = sys.stderr = nothing  # otherwise a custom rule's output could block on a full pipe
    os.dup2(nothing.fileno(), _STDOUT)
    os.dup2(write, _STDERR)
    os.close(write)
    return read


def _read_all(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _MOST_SAID_BYTES)
    except BlockingIOError:
        return b""
