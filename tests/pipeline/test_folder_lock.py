"""Only one run at a time can use a folder of results."""

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline import profile
from sluicegate.pipeline.runs.folder_lock import FolderInUse, lock_folder
from sluicegate.pipeline.runs.results import Results
from tests.integration.topics import create_topic
from tests.pipeline.commands import run
from tests.pipeline.polluted import UNLIMITED

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def write_claim(out: Path, host: str, pid: int, age_seconds: float = 0) -> Path:
    """Write the claim of another process."""
    file = out / ".running" / "0123456789abcdef.claim"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"job": "repair", "host": host, "pid": pid, "since": "2026-11-26T10:00:00+00:00"}))
    os.utime(file, (time.time() - age_seconds,) * 2)
    return file


def id_of_ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("job", ["profile", "repair", "replay", "extract", "watch", "verify"])
def test_second_command_reports_the_lock_holder_in_one_line(
    job: str, spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic, out = create_topic(kafka_bootstrap, UNLIMITED, 1), tmp_path / "out"
    results = Results(spark, str(out))
    results.make()
    policies = tmp_path / "sluicegate.yaml"
    policies.write_text("upstream: {bootstrap: ['127.0.0.1:9']}\nlisten: {bootstrap: '127.0.0.1:19092'}\n")
    more = {
        "repair": ("--apply",),
        "replay": ("--apply", "--policies", str(policies)),
        "watch": ("--once",),
        "verify": ("--topic", create_topic(kafka_bootstrap, UNLIMITED, 1)),
    }

    with lock_folder(results, "repair"):
        about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(out), *more.get(job, ()))
        message = run(job, *about, status=1)

    first = f"sluicegate-spark: {out} is in use by sluicegate-spark repair, process {os.getpid()} on "
    assert message.startswith(f"{first}{socket.gethostname()}, since ")
    assert "wait until it ends, or use another --out" in message
    assert len(message.splitlines()) == 1


def test_functions_reject_a_locked_folder_and_unlock_it(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    results = Results(spark, str(tmp_path))

    with lock_folder(results, "repair"), pytest.raises(FolderInUse):
        profile(spark, kafka_bootstrap, topic, tmp_path)

    profile(spark, kafka_bootstrap, topic, tmp_path)
    assert not list((tmp_path / ".running").iterdir())


def test_at_most_one_of_many_runs_locks_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    """Two runs never lock the folder. In rare cases none does, if two claims are made at the same moment."""
    results, runs = Results(spark, str(tmp_path)), 8
    begin, end = Barrier(runs), Barrier(runs)

    def wait_in_lock(_: int) -> bool:
        begin.wait(60)
        try:
            with lock_folder(results, "profile"):
                end.wait(60)
                return True
        except FolderInUse:
            end.wait(60)
            return False

    with ThreadPoolExecutor(runs) as pool:
        assert sum(pool.map(wait_in_lock, range(runs))) <= 1
    with lock_folder(results, "profile"):
        pass


@pytest.mark.parametrize("other", ["killed", "of an earlier process with this number", "on a host that has failed"])
def test_an_expired_claim_is_ignored(other: str, spark: SparkSession, tmp_path: Path) -> None:
    here = socket.gethostname()
    file = {
        "killed": lambda: write_claim(tmp_path, here, id_of_ended_process()),
        "of an earlier process with this number": lambda: write_claim(tmp_path, here, os.getpid()),
        "on a host that has failed": lambda: write_claim(tmp_path, "elsewhere", 1, age_seconds=61),
    }[other]()

    with lock_folder(Results(spark, str(tmp_path)), "profile"):
        assert not file.exists()


def test_claim_of_run_on_another_host_is_valid_while_renewed(spark: SparkSession, tmp_path: Path) -> None:
    results, file = Results(spark, str(tmp_path)), write_claim(tmp_path, "elsewhere", 1, age_seconds=7200)
    file.with_suffix(".alive").write_text("")

    message = "in use by sluicegate-spark repair, process 1 on elsewhere, since 2026-11-26T10"
    with pytest.raises(FolderInUse, match=message), lock_folder(results, "profile"):
        pass

    assert [left.name for left in file.parent.glob("*.claim")] == [file.name]
