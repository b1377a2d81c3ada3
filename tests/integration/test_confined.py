"""The proxy runs without capabilities, on a read-only file system, and without the system calls that container engines
deny."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sluicegate.proxy.server.startup import CannotStart
from sluicegate.proxy.workers import worker_process
from tests.broker.confined import DENIED, can_confine
from tests.broker.eventually import eventually
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import ROOT
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = pytest.mark.skipif(not can_confine(), reason="requires Linux on x86-64 and a kernel with Landlock")
_HOUR_MS = 3_600_000
_TRY = f"""
import ctypes, errno, pathlib, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in {sorted(DENIED.values())}:
    assert libc.syscall(number, 0, 0, 0, 0, 0) == -1 and ctypes.get_errno() == errno.EPERM, number
assert "CapEff:\\t0000000000000000" in pathlib.Path("/proc/self/status").read_text()
pathlib.Path(sys.argv[1], "data", "new").write_text("")
try:
    pathlib.Path(sys.argv[1], "new").write_text("")
except PermissionError:
    print("confined")
"""


def confined_command(folder: Path | str) -> list[str]:
    return [sys.executable, "-m", "tests.broker.confined", str(folder)]


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def confined_proxy(kafka_bootstrap: str, tmp_path: Path, data_folder: Path) -> Iterator[ProxyProcess]:
    settings = {
        "workers": 2,
        "violations": {"file": str(data_folder / "violations.jsonl")},
        "defaults": {"message.timestamp.after.max.ms": _HOUR_MS},
    }
    process = ProxyProcess(tmp_path, kafka_bootstrap, settings)
    process.command = [*confined_command(data_folder), COMMAND]
    process.environment |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        yield process.start()
    finally:
        process.stop()


def test_the_confinement_denies_writes_and_system_calls(tmp_path: Path, data_folder: Path) -> None:
    output = subprocess.run(
        [*confined_command(data_folder), sys.executable, "-c", _TRY, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (output.returncode, output.stdout, output.stderr) == (0, "confined\n", "")


def test_a_confined_proxy_validates_reports_reloads_and_ends(
    confined_proxy: ProxyProcess, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="confined")
    eventually(lambda: confined_proxy.metric("sluicegate_workers") == 2)

    def produce_codes_at(ahead_ms: int) -> list[int]:
        with RawClient(confined_proxy.bootstrap) as client:
            response = client.produce(9, [topic_data(topic, (0, batch([Rec(time.time_ns() // 1_000_000 + ahead_ms)])))])
        assert not isinstance(response, str), response
        return [p["error_code"] for p in response["responses"][0]["partition_responses"]]

    assert produce_codes_at(0) == [0]
    assert produce_codes_at(2 * _HOUR_MS) == [32]
    assert len(confined_proxy.wait_for_violations(topic, 1)) == 1
    assert confined_proxy.get("/metrics")[0] == 200

    confined_proxy.config["defaults"] = {"message.timestamp.after.max.ms": 3 * _HOUR_MS}
    (tmp_path / "sluicegate.yaml").write_text(yaml.safe_dump(confined_proxy.config, sort_keys=False))
    assert confined_proxy.process is not None
    confined_proxy.process.send_signal(signal.SIGHUP)
    eventually(lambda: produce_codes_at(2 * _HOUR_MS) == [0], what="the new bound")

    confined_proxy.terminate()
    assert confined_proxy.process.wait(30) == 0, confined_proxy.log()
    assert "Traceback" not in confined_proxy.log()


def test_several_workers_start_if_only_shared_memory_is_writable(kafka_bootstrap: str, tmp_path: Path) -> None:
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": 2, "violations": {}})
    process.command = [*confined_command(""), COMMAND]
    process.environment |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(tmp_path)}
    try:
        process.start()
        eventually(lambda: process.metric("sluicegate_workers") == 2)
    finally:
        process.stop()


def test_without_a_writable_folder_workers_report_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/" + "long" * 20)
    monkeypatch.setattr(worker_process, "_SHARED_MEMORY", "/nowhere")

    with pytest.raises(CannotStart, match="set TMPDIR"):
        worker_process.choose_socket_folder()
