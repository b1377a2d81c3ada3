"""The main program of the rules process: loads libraries and forks the process that applies rules.

A process that has ended is therefore replaced in milliseconds, without loading libraries again. The host does nothing
else; it has one thread, and data of clients never reaches it.
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

from sluicegate.proxy.rules_process.evaluator import NO_ROOM_TO_READ, OUT_OF_MEMORY, WORN_OUT, Evaluator
from sluicegate.proxy.rules_process.making import load
from sluicegate.proxy.rules_process.messages import Kind, Outcome, Response, send_response

_STDOUT, _STDERR = 1, 2
_MOST_SAID_BYTES = 64 << 10
# What libraries write before they give up because there is no more memory.
_OF_MEMORY = (b"memory allocation of", b"bad_alloc", b"out of memory", b"Out of memory")
_PR_SET_PDEATHSIG = 1


def main(questions: int, responses: int, kinds: list[str], memory: int) -> NoReturn:
    """`questions` and `responses`: descriptors of pipes; `memory` (bytes): what an evaluator may map beyond this."""
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the proxy says when to end
    here, there = FileIO(questions, "r"), FileIO(responses, "w")
    load(frozenset(Kind(kind) for kind in kinds))
    said = _take_standard_error()
    gc.collect()
    gc.freeze()  # what is here now stays as it is, and is shared with evaluators
    with suppress(OSError):  # nobody reads it any more
        send_response(there, Response(Outcome.DONE))  # it is there
        while (code := _evaluated(here, there, memory)) != 0:
            words = _read_all(said)
            is_memory = code in (OUT_OF_MEMORY, NO_ROOM_TO_READ) or (
                code == -signal.SIGABRT and any(word in words for word in _OF_MEMORY)
            )
            # Of any other end nobody knows whether half a question is still in the pipe.
            is_final = code == NO_ROOM_TO_READ or not (is_memory or code in (-signal.SIGPROF, WORN_OUT))
            if code != WORN_OUT:
                by, with_code = max(0, -code), max(0, code)
                send_response(there, Response(Outcome.ENDED, None, 0, 0, by, with_code, is_memory, is_final))
            if is_final:
                break
    os._exit(0)


def _evaluated(here: FileIO, there: FileIO, memory: int) -> int:
    """Fork an evaluator, and wait for its end: its code, or less than 0: the signal that has ended it."""
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
    """Ask Linux to end this process with the one that has started it; elsewhere it ends where its pipe does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _take_standard_error() -> int:
    """The end of a pipe from which all that libraries write can be read: never in the proxy's log, never blocking."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    nothing = Path(os.devnull).open("w")  # noqa: SIM115  # for as long as the process runs
    sys.stdout = sys.stderr = nothing  # what an own rule prints must not find a pipe that is full
    os.dup2(nothing.fileno(), _STDOUT)
    os.dup2(write, _STDERR)
    os.close(write)
    return read


def _read_all(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _MOST_SAID_BYTES)
    except BlockingIOError:
        return b""
