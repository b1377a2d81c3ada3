"""A benchmark that is terminated or killed leaves no process; a terminated one also leaves no folder."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.machine import with_children
from tests.broker.eventually import eventually
from tests.broker.test_child_processes import is_running
from tests.oracle.kafka_java import ROOT

pytestmark = pytest.mark.long

_STARTED = {"java", "sluicegate", "python"}  # the broker, the proxy, the relay


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield a running `python -m bench --short`, started directly or by make."""
    command = [sys.executable, "-m", "bench", "--short", "--out", str(tmp_path / "out")]
    if request.param == "make":
        (tmp_path / "Makefile").write_text(f".PHONY: bench\nbench:\n\t{' '.join(command)}\n")
        command = ["make", "-f", str(tmp_path / "Makefile"), "bench"]
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _names(pids: list[int]) -> set[str]:
    return {Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}


def _all_started(process: "subprocess.Popen[bytes]") -> list[int]:
    """Wait until a broker, the relay and a proxy run; return all processes below this one."""

    def remaining_processes() -> list[int]:
        try:
            pids = with_children(process.pid)[1:]
            return pids if _names(pids) >= _STARTED else []
        except OSError:  # the process has ended in the meantime
            return []

    return eventually(remaining_processes, 300, "a broker, a relay and a proxy")


@pytest.mark.parametrize("bench", [""], indirect=True, ids=["alone"])
def test_a_killed_benchmark_leaves_no_process(bench: "subprocess.Popen[bytes]") -> None:
    started = _all_started(bench)

    bench.kill()

    bench.wait(60)
    eventually(lambda: not any(map(is_running, started)), 30, "the end of all processes")


@pytest.mark.parametrize("bench", ["make"], indirect=True, ids=["make"])
def test_a_terminated_benchmark_leaves_no_process_and_no_folder(
    bench: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    started = _all_started(bench)

    bench.terminate()

    bench.wait(60)
    eventually(lambda: not any(map(is_running, started)), 30, "the end of all processes")
    eventually(lambda: not list((tmp_path / "temporary").glob("sluicegate-bench-*")), 30, "the end of the folder")
