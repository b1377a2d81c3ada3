"""An interrupted or killed test run leaves no process."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.broker.child_processes import _SETPRIV
from tests.broker.eventually import eventually
from tests.oracle.kafka_java import ROOT

pytestmark = [pytest.mark.skipif(_SETPRIV is None, reason="util-linux's setpriv is not installed"), pytest.mark.long]
_A_CHILD = """
    import subprocess
    from pathlib import Path

    from tests.broker.child_processes import killed_with_parent


    def test_that_takes_long():
        process = subprocess.Popen(killed_with_parent(["sleep", "600"]))
        Path({file!r}).write_text(str(process.pid))
        process.wait()
"""
_A_GRANDCHILD = """
    from tests.broker.child_processes import ProcessGroup


    def test_that_takes_long():
        group = ProcessGroup(["sh", "-c", "sleep 600 & echo $! > {file}.part; mv {file}.part {file}; wait"])
        group.process.wait()
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("long_test", [_A_CHILD, _A_GRANDCHILD], ids=["a child", "a grandchild"])
@pytest.mark.parametrize("side_by_side", [(), ("-n", "1")], ids=["in one process", "side by side"])
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_a_run_that_ends_early_leaves_no_process(
    signal_number: signal.Signals, side_by_side: tuple[str, ...], long_test: str, tmp_path: Path
) -> None:
    started, file = tmp_path / "pid", tmp_path / "test_long.py"
    file.write_text(textwrap.dedent(long_test).format(file=str(started)))
    # A run that was started in the background ignores SIGINT, and its children would too.
    default_signals = ["env", "--default-signal=INT"]
    command = [
        *default_signals,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *side_by_side,
        str(file),
    ]
    run = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        eventually(lambda: started.exists() and started.read_text(), 60, "the start of the test's process")
        child = int(started.read_text())
        assert is_running(child)

        run.send_signal(signal_number)

        run.wait(60)
        eventually(lambda: not is_running(child), 30, "the end of the test's process")
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
