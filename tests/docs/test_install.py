"""docs/install.md: its first run works with a real broker; its manifests and commands fit the repository."""

import os
import re
import shlex
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from sluicegate.proxy.cli.commands import app
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import COMMAND
from tests.deploy.manifests import DEPLOY
from tests.deploy.test_kubernetes import check_manifests_match, check_ports_match
from tests.oracle.kafka_java import ROOT
from tests.proxy.cli.test_commands import sluicegate_process

PAGE = (ROOT / "docs/install.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines()]
TOOLS = {"pip", "sluicegate", "make", "docker", "helm", "kubectl", "python3", "install", "systemctl", "curl"}


@pytest.mark.long
def test_the_first_run_of_the_install_page_works_with_a_broker(kafka_bootstrap: str, tmp_path: Path) -> None:
    (block,) = [block for block in BLOCKS if "sluicegate bootstrap" in block and "/opt/" not in block]
    *before, run = block.replace("127.0.0.1:9092", kafka_bootstrap).splitlines()
    first = free_ports(8)
    own_ports = {
        "SLUICEGATE__LISTEN__BOOTSTRAP": f"127.0.0.1:{first}",
        "SLUICEGATE__LISTEN__BROKER_PORT_BASE": str(first + 2),
        "SLUICEGATE__ADMIN__LISTEN": f"127.0.0.1:{first + 1}",
    }
    environment = os.environ | own_ports | {"PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"}

    for line in before:
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    with (tmp_path / "log").open("wb") as log:
        proxy = subprocess.Popen(
            killed_with_parent(shlex.split(run)), cwd=tmp_path, env=environment, stderr=log, stdout=log
        )
    try:
        eventually(lambda: sluicegate_process("healthcheck", **own_ports).returncode == 0, what="a proxy that is alive")
        proxy.send_signal(signal.SIGTERM)
        assert proxy.wait(60) == 0
    finally:
        proxy.kill()
        proxy.wait()


@pytest.mark.parametrize("line", LINES)
def test_every_name_in_a_command_exists(line: str) -> None:
    words = shlex.split(line)
    assert Path(words[0]).name in TOOLS
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for word in words:
        if word.startswith("deploy/"):
            assert (ROOT / word).exists(), word
    if words[0] == "sluicegate":
        group: Any = typer.main.get_command(app)
        command = group.commands.get(words[1], group)
        assert {word for word in words if word.startswith("--")} <= {
            name for one in command.params for name in one.opts
        }


def test_the_install_page_names_exactly_the_packages_extras() -> None:
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])

    named = set(re.findall(r"sluicegate\[(\w+)\]", PAGE))

    assert named == extras


def test_names_and_ports_of_the_pages_manifest_match_each_other(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(# kubernetes\.yaml\n.*?)```", PAGE, re.DOTALL)
    found = list(yaml.safe_load_all(text))

    check_manifests_match(found, tmp_path)
    check_ports_match(found)


def test_every_line_of_the_pages_unit_is_in_the_packaged_unit() -> None:
    (unit,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    whole = (DEPLOY / "systemd/sluicegate.service").read_text().splitlines()

    assert [line for line in unit.splitlines() if line not in whole] == []
