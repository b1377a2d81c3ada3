"""`sluicegate-spark` as its users run it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.broker.eventually import eventually
from tests.pipeline.session import SHORT_LIVED, WITHOUT_ARCHIVE

_ENVIRONMENT = {**os.environ, "SPARK_LAUNCHER_OPTS": WITHOUT_ARCHIVE, "SPARK_SUBMIT_OPTS": SHORT_LIVED}
COMMAND = str(Path(sys.executable).with_name("sluicegate-spark"))


def run(*arguments: str, status: int = 0) -> str:
    """What the command printed, with what it told of errors."""
    command = [COMMAND, *arguments, "--master", "local[2]"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False, env=_ENVIRONMENT)
    assert told.returncode == status, told.stdout + told.stderr
    return told.stdout + told.stderr


def kill_once(reached: Callable[[], bool], folder: Path, *arguments: str) -> None:
    """Start the command and kill it, and all that it has started, with SIGKILL as soon as `reached` is true."""
    with (folder / "killed.log").open("wb") as log:
        process = subprocess.Popen(
            [COMMAND, *arguments, "--master", "local[2]"],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=_ENVIRONMENT,
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
