"""Runs `sluicegate-spark` as its users do."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.pipeline import java_options
from tests.pipeline.repeated_command import MASTER, status_of
from tests.pipeline.session import SharedSession

ENVIRONMENT = {**os.environ, **java_options.ENVIRONMENT}
COMMAND = str(Path(sys.executable).with_name("sluicegate-spark"))


class RepeatedCommand:
    """Runs commands in a separate process, all in one session (see `repeated_command`). The process starts with the
    first command.
    """

    started: ClassVar[list["RepeatedCommand"]] = []

    def __init__(
        self,
        environment: Mapping[str, str],
        settings: Mapping[str, str] = MappingProxyType({}),
        folder: Path = Path(),
    ) -> None:
        """`settings`: settings of the session, in addition to those of each command. `folder`: the working
        directory."""
        self._environment = environment
        self._settings = settings
        self._runs_in = folder

    def run(self, arguments: Sequence[str], status: int) -> str:
        """Return the output, standard output first, as from a separate process, which must end with `status`."""
        ended, reported = self.status_and_output(arguments)
        assert ended == status, reported
        return reported

    def status_and_output(self, arguments: Sequence[str]) -> tuple[int, str]:
        """Return the exit status and the output, standard output first, as from a separate process."""
        if self not in RepeatedCommand.started:
            self._start()
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(arguments), file=self._process.stdin, flush=True)
        ended = self._process.stdout.readline()
        reported = "".join(file.read_text() for file in self._files)
        assert ended, f"the process that keeps a session ended:\n{reported}"
        return int(ended), reported

    def _start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sluicegate-spark-"))
        self._files = [self._folder / "output.txt", self._folder / "errors.txt"]
        settings = json.dumps(dict(self._settings))
        module = "tests.pipeline.repeated_command"
        command = [sys.executable, "-m", module, *map(str, self._files), settings, str(self._runs_in)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            killed_with_parent(command), stdin=pipe, stdout=pipe, text=True, env=self._environment
        )
        RepeatedCommand.started.append(self)

    def end(self) -> None:
        """End the process, if it has started, which frees the memory of its Java."""
        if self not in RepeatedCommand.started:
            return
        RepeatedCommand.started.remove(self)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        shutil.rmtree(self._folder)


def end_kept() -> None:
    """End all processes that this process started. Each uses a gigabyte of memory, which other tests need."""
    for kept in list(RepeatedCommand.started):
        kept.end()


atexit.register(end_kept)


def run(*arguments: str, status: int = 0) -> str:
    """Return the command's output, standard output first. The command runs in this process, in the session of the
    tests, because starting Java takes longer than most jobs.
    """
    SharedSession.get()
    with tempfile.TemporaryDirectory(prefix="sluicegate-spark-") as folder:
        files = [Path(folder) / "output.txt", Path(folder) / "errors.txt"]
        with _printing_to(files), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as the command's entry point does
            ended = status_of([*arguments, "--master", MASTER])
        reported = "".join(file.read_text() for file in files)
    assert ended == status, reported
    return reported


@contextmanager
def _printing_to(files: Sequence[Path]) -> Iterator[None]:
    """Redirect the output of this process to these files, both Python's streams and file descriptors 1 and 2."""
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number, file in enumerate(files, 1):
            with file.open("wb") as opened:
                os.dup2(opened.fileno(), number)
        with (
            open(1, "w", closefd=False) as output,
            open(2, "w", closefd=False) as errors,
            redirect_stdout(output),
            redirect_stderr(errors),
        ):
            yield
    finally:
        for number, of_process in enumerate(kept, 1):
            os.dup2(of_process, number)
            os.close(of_process)


def run_in_new_process(*arguments: str, status: int = 0) -> str:
    """Run the command in a separate process, as users start it, and return its output."""
    command = [COMMAND, *arguments, "--master", MASTER]
    reported = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False, env=ENVIRONMENT)
    assert reported.returncode == status, reported.stdout + reported.stderr
    return reported.stdout + reported.stderr


def kill_once(reached: Callable[[], bool], folder: Path, *arguments: str) -> None:
    """Start the command, and kill it with all its child processes (SIGKILL) as soon as `reached` returns true."""
    with (folder / "killed.log").open("wb") as log:
        process = subprocess.Popen(
            killed_with_parent([COMMAND, *arguments, "--master", MASTER]),
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=ENVIRONMENT,
        )

    def is_time() -> bool:
        assert process.poll() is None, "ended before it could be killed:\n" + (folder / "killed.log").read_text()
        return reached()

    try:
        eventually(is_time, 400, "the moment to kill it")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found
