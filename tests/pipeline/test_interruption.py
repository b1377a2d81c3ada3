"""After Ctrl-C or SIGTERM, the command reports the remaining work, and exits with the status that shells report.

It leaves no process.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.pipeline.commands import COMMAND, ENVIRONMENT, run, summary
from tests.pipeline.events import ship_events
from tests.pipeline.large_partition import large_partition
from tests.pipeline.repairs import now_ms

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
_NOTHING_WRITTEN = (
    "no topic was written, and results are complete only in folders with a summary.json. Run the same command again"
)
_BATCHES_STAY = "complete batches stay. Run the same command again to continue after them"


def run_with_signal(is_time: Callable[[], object], number: signal.Signals, *arguments: str) -> tuple[int, str]:
    """Return the exit status and the output of a command that gets a signal when `is_time` is true. Fails if a process
    of its session is left.
    """
    process = subprocess.Popen(
        killed_with_parent([COMMAND, *arguments, "--master", "local[2]"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=ENVIRONMENT,
    )
    try:
        eventually(lambda: is_time() or process.poll() is not None, 400, "the moment to interrupt it")
        process.send_signal(number)
        message = process.communicate(timeout=120)[0]
        eventually(lambda: not _in_session(process.pid), 30, "the end of all its processes")
    finally:
        for left in _in_session(process.pid):
            os.kill(left, signal.SIGKILL)
    return process.returncode, message


def _in_session(session: int) -> list[int]:
    """Return the running processes of a session, without zombies."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                state, _, _, its = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue  # the process has ended in the meantime
            if int(its) == session and state != "Z":
                found.append(int(process.name))
    return found


def interruption_line(number: signal.Signals, remains: str) -> str:
    return f"sluicegate-spark: interrupted ({number.name}): {remains}"


@pytest.fixture(scope="module")
def large_topic(kafka_bootstrap: str) -> str:
    return large_partition(kafka_bootstrap, now_ms())


def test_interruption_before_session_start_is_reported_in_one_line(kafka_bootstrap: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        killed_with_parent([COMMAND, "profile", "--bootstrap", "127.0.0.1:9", "--topic", "t", "--out", str(tmp_path)]),
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    eventually(lambda: f"{_caught(process.pid):x}".endswith("4002"), 60, "handlers of SIGINT and SIGTERM")
    process.send_signal(signal.SIGINT)

    message = process.communicate(timeout=60)[1]

    assert (process.returncode, message) == (
        130,
        "sluicegate-spark: interrupted (SIGINT) before any job began\n",
    )


def _caught(pid: int) -> int:
    """Return the signals for which a process has handlers, as bits."""
    lines = (Path("/proc") / str(pid) / "status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("SigCgt")), 16)


def test_an_interrupted_profile_writes_nothing_and_unlocks_its_folder(
    large_topic: str, kafka_bootstrap: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    about = ("--bootstrap", kafka_bootstrap, "--topic", large_topic, "--out", str(out))

    status, message = run_with_signal((out / "hours" / "_temporary").exists, signal.SIGINT, "profile", *about)

    assert status == 130, message
    assert message.splitlines()[-1] == interruption_line(signal.SIGINT, _NOTHING_WRITTEN)
    assert "Traceback" not in message
    assert not list((out / ".running").glob("*"))


def test_interrupted_repair_continues_when_command_is_repeated(
    large_topic: str, kafka_bootstrap: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    about = ("repair", "--bootstrap", kafka_bootstrap, "--topic", large_topic, "--out", str(out), "--apply")

    def has_begun() -> bool:
        plan = out / "plan.json"
        return plan.exists() and json.loads(plan.read_text())["begun"] is True

    status, message = run_with_signal(has_begun, signal.SIGTERM, *about)

    assert status == 143, message
    assert message.splitlines()[-1] == interruption_line(
        signal.SIGTERM,
        "committed records stay in the clean topic, and readers with isolation.level=read_committed see only them. Run "
        "the same command again to continue from there",
    )
    assert "Traceback" not in message
    run(*about)
    clean = ("--topic", f"{large_topic}-clean", "--plan", str(out), "--out", str(tmp_path / "verify"))
    assert "have the same records" in run("verify", "--bootstrap", kafka_bootstrap, "--topic", large_topic, *clean)


def test_interrupted_violations_follow_completes_its_batch(tmp_path: Path) -> None:
    count = ship_events(tmp_path / "shipped", files=3, a_file=5)
    out = tmp_path / "out"
    command = ("violations", "--events", str(tmp_path / "shipped"), "--out", str(out))
    follow = ("--follow", "--every-seconds", "1")

    status, message = run_with_signal((out / "summary.json").exists, signal.SIGINT, *command, *follow)

    assert status == 130, message
    assert message.splitlines()[-1] == interruption_line(signal.SIGINT, _BATCHES_STAY)
    assert "Traceback" not in message
    assert summary(out)["events"] == count
    run(*command)
    assert summary(out)["events"] == count
