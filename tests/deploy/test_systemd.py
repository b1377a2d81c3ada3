"""systemd can parse the unit, and its security check finds few rights that could still be removed."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.manifests import DEPLOY
from tests.oracle.kafka_java import ROOT

UNIT = DEPLOY / "systemd/sluicegate.service"
SOCKET = DEPLOY / "systemd/sluicegate.socket"
_MOST_EXPOSED = 15
"""The highest permitted exposure in tenths, out of at most 100 in systemd-analyze. The measured value is 12."""


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: Debian's package systemd")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


def service_section() -> dict[str, str]:
    reader = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    reader.optionxform = str  # type: ignore[method-assign]  # as configparser documents
    reader.read(UNIT)
    return dict(reader["Service"])


def test_systemd_analyze_finds_no_problem_in_the_service(tmp_path: Path) -> None:
    """systemd-analyze exits with 0 for any findings, so the test checks its output."""
    installed = tmp_path / UNIT.name
    installed.write_text(UNIT.read_text().replace("/opt/sluicegate/bin/sluicegate", "/bin/true"))

    done = analyze("verify", str(installed))

    told = [line for line in done.stderr.splitlines() if "sluicegate.service" in line]
    assert told == []


def test_systemd_analyze_finds_no_problem_in_the_socket_unit(tmp_path: Path) -> None:
    for each in (UNIT, SOCKET):
        text = each.read_text().replace("/opt/sluicegate/bin/sluicegate", "/bin/true")
        (tmp_path / each.name).write_text(text)

    done = analyze("verify", str(tmp_path / SOCKET.name))

    assert [line for line in done.stderr.splitlines() if "sluicegate" in line] == []


def test_the_service_has_few_permissions() -> None:
    done = analyze("security", "--offline=true", f"--threshold={_MOST_EXPOSED}", str(UNIT))

    assert done.returncode == 0, done.stdout[-300:]
    assert re.search(r"Overall exposure level for sluicegate.service: \d\.\d OK", done.stdout)


def test_the_service_waits_for_a_drain_and_reloads_by_sighup() -> None:
    told = service_section()

    assert int(told["TimeoutStopSec"]) > 30  # the default of drain_timeout_seconds
    assert told["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert "SIGHUP" in (ROOT / "docs/observing.md").read_text()
    assert told["ExecStart"].split("sluicegate ", 1)[1].startswith("run --config /etc/sluicegate/")
