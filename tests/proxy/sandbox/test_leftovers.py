"""A sandbox leaves no processes, ports, files or descriptors, however it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

from sluicegate.proxy.sandbox.process import SandboxProcess
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.proxy_process import COMMAND
from tests.proxy.sandbox.test_sandbox import CASES, POLICIES, send

MANY_STARTS = 100 if os.environ.get("SLUICEGATE_THOROUGH") else 20
CALLER = """
import time
from sluicegate.proxy.sandbox.process import SandboxProcess
sandbox = SandboxProcess({policies!r})
print(sandbox.process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "sluicegate.yaml").write_text(POLICIES)
    (folder / "payments.test.yaml").write_text(CASES)
    return folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def listening_ports(pid: int) -> set[int]:
    """Return the ports on which a process listens, also those of the mock cluster."""
    sockets = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # the socket has been closed
            sockets.add(str(each.readlink()))
    lines = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    listening = [line for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets]
    return {int(line[1].rpartition(":")[2], 16) for line in listening}


def is_free(port: int) -> bool:
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("starts", [3, pytest.param(MANY_STARTS, marks=pytest.mark.long)])
def test_repeated_sandbox_starts_leave_no_files_processes_or_ports(
    starts: int, policies: Path, temporary: Path
) -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    pids, ports, left = [], set(), []
    for _ in range(starts):
        with SandboxProcess(policies) as sandbox:
            pid = sandbox.process.pid
            pids += [pid, *children(pid)]
            listening = listening_ports(pid)
            assert len(listening) >= 4  # bootstrap, broker, report, mock cluster
            ports |= listening
            send(sandbox.bootstrap, "payments.tested", "key")
        assert sandbox.process.returncode == 0
        left += list(temporary.iterdir())

    assert left == []
    assert [pid for pid in pids if runs(pid)] == []
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
    assert [port for port in ports if not is_free(port)] == []


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_sandbox_prints_report_when_stopped_by_signal(ending: signal.Signals, policies: Path, temporary: Path) -> None:
    command = killed_with_parent([COMMAND, "sandbox", "--config", str(policies)])
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert running.stdout is not None
        found = re.search(r"bootstrap\.servers=(\S+)", running.stdout.readline())
        assert found is not None
        pids, ports = [running.pid, *children(running.pid)], listening_ports(running.pid)
        send(found[1], "payments.eu", None)
        os.killpg(running.pid, ending)  # as a terminal does for Ctrl-C
        output, errors = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()

    assert (running.returncode, errors) == (1, "")
    assert output.endswith("sluicegate sandbox: 0 records accepted, 1 violation failed the run\n")
    assert [pid for pid in pids if runs(pid)] == []
    assert [port for port in ports if not is_free(port)] == []
    assert list(temporary.iterdir()) == []


def test_killed_caller_leaves_no_files_processes_or_ports(policies: Path, temporary: Path) -> None:
    caller = textwrap.dedent(CALLER.format(policies=str(policies)))
    with subprocess.Popen([sys.executable, "-c", caller], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        pids, ports = [pid, *children(pid)], listening_ports(pid)
        running.kill()

    eventually(lambda: not any(map(runs, pids)), 60)
    assert [port for port in ports if not is_free(port)] == []
    assert list(temporary.iterdir()) == []
