"""A sandbox in a separate process, for tests in Python."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self
from urllib.request import ProxyHandler, build_opener

from sluicegate.proxy.sandbox.violations import Violation

_READY = re.compile(r"bootstrap\.servers=(\S+) report=(\S+)")
_START_SECONDS = 120.0
_STOP_SECONDS = 30.0
_READ_SECONDS = 10.0


class SandboxFailed(Exception):
    """The sandbox did not start. The message contains its output."""


class SandboxProcess:
    """A sandbox that starts immediately and runs until `stop`. Raises SandboxFailed.

    `bootstrap` is the address for clients. The sandbox also stops if the process that created it is killed.
    """

    def __init__(
        self,
        config: Path | str,
        upstream: Sequence[str] = (),
        topics: Sequence[str] = (),
        allow: Sequence[str] = (),
    ) -> None:
        """The arguments are those of `sluicegate sandbox`."""
        command = [sys.executable, "-m", "sluicegate", "sandbox", "--config", str(config), "--stop-with-stdin"]
        for option, values in (("--upstream", upstream), ("--topics", topics), ("--allow", allow)):
            command += [part for value in values for part in (option, value)]
        self._open = build_opener(ProxyHandler({})).open  # the environment's HTTP proxy is not for this machine
        with TemporaryFile("w+") as errors:
            self.process = subprocess.Popen(  # noqa: S603  # arguments of the caller, without a shell
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            ready = _READY.search(self._first_line())
            if ready is None:
                self.stop()
                errors.seek(0)
                raise SandboxFailed(f"sluicegate sandbox did not start: {errors.read().strip()}")
        self.bootstrap, self._report = ready.groups()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def report(self, after: int = 0) -> dict[str, Any]:
        """Return the report, with the violations numbered above `after`."""
        with self._open(f"{self._report}?after={after}", timeout=_READ_SECONDS) as response:
            report: dict[str, Any] = json.load(response)
        return report

    def violations(self, after: int = 0) -> list[Violation]:
        """Return the violations numbered above `after`."""
        return [Violation.from_json(shown) for shown in self.report(after)["violations"]]

    def stop(self) -> str:
        """Stop the sandbox, and return its report for people."""
        try:
            output, _ = self.process.communicate(timeout=_STOP_SECONDS)  # closes the sandbox's standard input
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, _ = self.process.communicate()
        return output

    def _first_line(self) -> str:
        assert self.process.stdout is not None
        too_late = threading.Timer(_START_SECONDS, self.process.kill)
        too_late.start()
        try:
            return self.process.stdout.readline()
        finally:
            too_late.cancel()
