"""The output on a terminal shows progress and findings, without Spark's own lines."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from sluicegate.pipeline.source.progress_line import ReadOffsets
from tests.broker.child_processes import killed_with_parent
from tests.integration.topics import create_topic
from tests.pipeline.commands import COMMAND, ENVIRONMENT, run_in_new_process
from tests.pipeline.large_partition import large_partition
from tests.pipeline.polluted import HOUR, UNLIMITED, Polluter
from tests.pipeline.repairs import now_ms

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
_SPARKS_OWN = re.compile(r"WARN|ERROR|incubator|log level|Exception in|Traceback|%[0-9]\||\[Stage")

_MOVE = re.compile(r"profile: ([0-9,]+)(?: of ([0-9,]+))? offsets read(?: \(\d+ %\))?, [0-9,]+/s")
_OF_OTHERS = (b"", b"\xff", b"[]", b"7", b'["other","a/1",5]', b'["token",1,5]', b'["token","a",{}]')


def run_in_terminal(width: int, *arguments: str) -> str:
    """Run a command in a terminal of this width and return its output."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    command = killed_with_parent([COMMAND, *arguments, "--master", "local[2]"])
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=ENVIRONMENT)
    os.close(its)
    message = b""
    try:
        while chunk := _read(ours):
            message += chunk
    finally:
        os.close(ours)
        status = process.wait(120)
    assert status == 0, message.decode()
    return message.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # no process has the terminal open any longer
        return b""


def test_terminal_shows_only_progress_counted_in_offsets(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic, log = large_partition(kafka_bootstrap, now_ms(), batches=300), tmp_path / "spark.log"
    about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"))

    message = run_in_terminal(80, "profile", *about, "--spark-log", str(log))

    chunks = re.split(r"\r\x1b\[K|\r?\n", message)
    moves = [
        re.fullmatch(r"profile: ([0-9,]+)(?: of ([0-9,]+))? offsets read(?: \(\d+ %\))?, [0-9,]+/s", p) for p in chunks
    ]
    done = [int(move[1].replace(",", "")) for move in moves if move is not None]
    assert done == sorted(done)
    assert done  # a fast machine shows one step of progress, a slow machine several
    assert 0 < done[0] < 1_500_000
    assert {move[2] for move in moves if move is not None and move[2]} == {"1,502,804"}
    assert _SPARKS_OWN.search(message) is None, message
    assert "incubator" in log.read_text()


def test_task_failure_is_reported_in_one_line(kafka_bootstrap: str, tmp_path: Path) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=60, span_ms=HOUR)
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluted.topic, "--out", str(tmp_path / "out"))

    message = run_in_new_process("extract", *about, "--extractor", "fail", status=1)

    assert message.startswith("sluicegate-spark: ")
    assert len(message.splitlines()) == 1, message


def test_unwritable_spark_log_file_is_reported_in_one_line(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"))

    message = run_in_new_process("profile", *about, "--spark-log", str(tmp_path / "no" / "such.log"), status=1)

    log = tmp_path / "no" / "such.log"
    assert message == f"sluicegate-spark: --spark-log {log} cannot be written: No such file or directory\n"


def test_progress_counts_add_up_over_tasks_and_restart_with_a_plan() -> None:
    reading = ReadOffsets("token")
    reading.plan(1000)
    for process, count in (("a/1", 300), ("a/2", 200), ("a/1", 500)):
        reading.take(json.dumps(["token", process, count]).encode())

    assert reading.in_words(10) == "700 of 1,000 offsets read (70 %), 10/s"
    reading.take(json.dumps(["token", "a/2", 500]).encode())
    reading.plan(4000)
    assert reading.in_words(0) == "0 of 4,000 offsets read (0 %), 0/s"
    reading.take(json.dumps(["token", "a/1", 1500]).encode())
    assert reading.in_words(0) == "1,000 of 4,000 offsets read (25 %), 0/s"


@pytest.mark.parametrize(
    "datagram", [b"", b"\xff", b"[]", b"7", b'["other","a/1",5]', b'["token",1,5]', b'["token","a",{}]']
)
def test_invalid_or_foreign_progress_datagrams_are_ignored(datagram: bytes) -> None:
    reading = ReadOffsets("token")
    reading.plan(10)

    reading.take(datagram)

    assert reading.done == 0
