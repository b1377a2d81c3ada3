"""Runs a process next to the proxy (stand-in broker, honest client, senders), controlled by lines over its pipes."""

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

from tests.broker.child_processes import killed_with_parent

ROOT = Path(__file__).parents[2]
_RESPONSE_SECONDS = 200
_READY_SECONDS = 90


class SideProcess:
    """Runs `module` with one argument. It writes one line of JSON when it is ready and one for each command."""

    def __init__(self, module: str, **settings: Any) -> None:
        command = [sys.executable, "-m", module, json.dumps(settings)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            killed_with_parent(command), cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> "SideProcess":
        self._response(_READY_SECONDS)
        return self

    def ask(self, command: str, seconds: float = _RESPONSE_SECONDS) -> dict[str, Any]:
        """Send a command and return its response. Raises AssertionError if there is none in time."""
        self.send(command)
        return self._response(seconds)

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()

    def response(self, seconds: float = _RESPONSE_SECONDS) -> dict[str, Any]:
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
            assert selector.select(seconds), f"{self._process.args!r} did not respond within {seconds} s"
        line = self._process.stdout.readline()
        assert line, f"{self._process.args!r} ended"
        response: dict[str, Any] = json.loads(line)
        assert "failed" not in response, response["failed"]
        return response


def take_many_descriptors() -> None:
    """Raise this process's limit of open descriptors to the highest value that the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def settings_from_arguments() -> dict[str, Any]:
    """Return the settings given to `SideProcess`, in the process itself."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    return given


def report(**fields: Any) -> None:
    """Write one response to the test."""
    print(json.dumps(fields), flush=True)


def fork_for_each(work: Callable[[dict[str, Any], FileIO], None], niceness: int) -> None:
    """Run `work` for each line of standard input, in a forked process that ends afterwards and frees its memory.

    `work` may read further lines itself. Its exceptions are reported.
    """
    os.nice(niceness)
    take_many_descriptors()
    report()
    commands = FileIO(0)  # unbuffered, because both processes read it
    while settings := commands.readline():
        child = os.fork()
        if child == 0:
            try:
                work(json.loads(settings), commands)
            except BaseException:
                traceback.print_exc()
                report(failed=traceback.format_exc())
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.waitpid(child, 0)


def serve_commands(responses: dict[str, Callable[[], dict[str, Any]]]) -> None:
    """Run the command that each line names until the pipe is closed. What it asserts in vain is reported."""
    for line in sys.stdin:
        try:
            response = responses[line.strip()]()
        except AssertionError as error:
            response = {"failed": str(error)}
        report(**response)
