"""`sluicegate demo` works in a terminal and in a pipe, reports a port in use, and ends on Ctrl-C."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.proxy.demo.running import introduction_lines
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports

COMMAND = [sys.executable, "-c", "from sluicegate.proxy.cli.main import main; main()", "demo"]
"""The command with which `make run` starts the demo."""


@pytest.fixture
def environment() -> dict[str, str]:
    """Return environment variables that give the demo free ports."""
    first = free_ports(8)
    return os.environ | {
        "SLUICEGATE__LISTEN__BOOTSTRAP": f"127.0.0.1:{first}",
        "SLUICEGATE__LISTEN__BROKER_PORT_BASE": str(first + 2),
        "SLUICEGATE__ADMIN__LISTEN": f"127.0.0.1:{first + 1}",
        "TERM": "xterm",
    }


@pytest.fixture
def terminal(environment: dict[str, str]) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Yield the demo, running in a terminal of 80 columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    demo = subprocess.Popen(
        killed_with_parent(COMMAND), stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True
    )
    os.close(its)
    os.set_blocking(ours, False)
    yield ours, demo
    demo.kill()
    demo.wait()
    os.close(ours)


@pytest.mark.long
def test_demo_prints_plain_lines_with_consistent_counts_to_pipe(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*COMMAND, "--seconds", "4"], env=environment, capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    bootstrap = environment["SLUICEGATE__LISTEN__BOOTSTRAP"]
    assert f"clients connect to  {bootstrap}\n" in done.stdout
    assert f"kcat -P -b {bootstrap} -t orders.eu\n" in done.stdout
    ((records, batches, rejected),) = re.findall(
        r"forwarded (\d+) records in (\d+) batches; rejected (\d+) batches\n\Z", done.stdout
    )
    assert int(records) == 4 * int(batches) > 0  # every sample batch has four records
    assert done.stdout.count("rejected ") == int(rejected) + done.stdout.count("forwarded ")


@pytest.mark.long
def test_demo_shows_table_in_terminal_and_exits_cleanly_on_ctrl_c(
    terminal: tuple[int, "subprocess.Popen[bytes]"],
) -> None:
    ours, demo = terminal
    seen = bytearray()

    def is_shown(text: bytes) -> bool:
        try:
            seen.extend(os.read(ours, 1 << 16))
        except OSError:  # no new output, or the demo has ended
            return text in seen
        return text in seen

    eventually(lambda: is_shown(b"looks like nanoseconds"), what="a rejection in the table")
    assert b"producer" in seen and b"legacy-billing" in seen
    demo.send_signal(signal.SIGINT)
    eventually(lambda: is_shown(b"never") or demo.poll() is not None, what="the end")

    assert demo.returncode == 0
    assert b"Traceback" not in seen


def test_demo_reports_port_in_use_in_one_line(environment: dict[str, str]) -> None:
    environment["SLUICEGATE__LISTEN__BOOTSTRAP"] = environment["SLUICEGATE__ADMIN__LISTEN"]

    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 1
    taken = environment["SLUICEGATE__ADMIN__LISTEN"]
    assert done.stderr.startswith(f"sluicegate: cannot listen on {taken}")
    assert re.search(r": SLUICEGATE__(LISTEN__BOOTSTRAP|ADMIN__LISTEN)=\S+:\d+ sluicegate demo$", done.stderr.strip())


def test_the_demo_reports_an_invalid_variable(environment: dict[str, str]) -> None:
    environment["SLUICEGATE__LISTEN__BOOTSTRAP"] = "nowhere"

    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 1
    assert "SLUICEGATE__LISTEN__BOOTSTRAP" in done.stderr
    assert "Traceback" not in done.stderr


def test_demo_introduction_ends_with_url_outside_git_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert re.search(r"^Next: https://\S+/tutorial\.html\. ", list(introduction_lines("h:1", 9650))[-1])
