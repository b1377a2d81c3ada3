"""A process beside the proxy (stand-in broker, honest client, senders), asked in lines of JSON over its pipes."""

import json
import os
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from tests.broker.child_processes import ending_with_tests

ROOT = Path(__file__).parents[2]
_RESPONSE_SECONDS = 200
_READY_SECONDS = 90


class SideProcess:
    """Runs `module` with one argument; it says `{}` or more when it is ready and answers each line with a line."""

    def __init__(self, module: str, **settings: Any) -> None:
        command = [sys.executable, "-m", module, json.dumps(settings)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            ending_with_tests(command), cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.said: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> "SideProcess":
        self.said = self._response(_READY_SECONDS)
        return self

    def ask(self, what: str, seconds: float = _RESPONSE_SECONDS) -> dict[str, Any]:
        self.tell(what)
        return self._response(seconds)

    def tell(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(what.encode() + b"\n")
        self._process.stdin.flush()

    def answer(self, seconds: float = _RESPONSE_SECONDS) -> dict[str, Any]:
        return self._response(seconds)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _response(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        with DefaultSelector() as selector:
            selector.register(self._process.stdout, EVENT_READ)
            assert selector.select(seconds), f"{self._process.args!r} says nothing for {seconds} s"
        line = self._process.stdout.readline()
        assert line, f"{self._process.args!r} ended"
        said: dict[str, Any] = json.loads(line)
        assert "failed" not in said, said["failed"]
        return said


def take_many_descriptors() -> None:
    """As many as the system lets this process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def settings_given() -> dict[str, Any]:
    """What `SideProcess` was made with, in the process itself."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    return given


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def fork_for_each(work: Callable[[dict[str, Any], FileIO], None], niceness: int) -> None:
    """Do what each line of standard input asks for, in a process that goes when it is done, with all that it has taken.
    `work` may read on where this one has stopped. What it raises is said.
    """
    os.nice(niceness)
    take_many_descriptors()
    say()
    told = FileIO(0)  # unbuffered, as both processes read it
    while settings := told.readline():
        child = os.fork()
        if child == 0:
            try:
                work(json.loads(settings), told)
            except BaseException:
                traceback.print_exc()
                say(failed=traceback.format_exc())
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.waitpid(child, 0)


def response_lines(answers: dict[str, Callable[[], dict[str, Any]]]) -> None:
    """Answer what is asked until the pipe is closed."""
    for line in sys.stdin:
        say(**answers[line.strip()]())
