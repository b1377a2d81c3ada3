"""Five ways to install, followed in an empty folder from built artefacts: pip, systemd, Helm, Docker, compose.

The wheel is SLUICEGATE_WHEEL, as of a release, or one without compiled modules. The pages about containers need Docker
with compose, and SLUICEGATE_IMAGE: the name of a built image (`make image`).
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.deploy.manifests import documents_of_kind, yaml_documents
from tests.deploy.test_kubernetes import check_ports_match
from tests.docs.blocks import Block, blocks_of
from tests.docs.walk import Reader
from tests.oracle.kafka_java import ROOT
from tests.packaging.built import copy_and_build_source, wheel_of

pytestmark = pytest.mark.long

DOCS = ROOT / "docs"
PUBLISHED = dict(line.split("=", 1) for line in (ROOT / ".github/identity.env").read_text().splitlines() if "=" in line)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let `pip install sluicegate` find the wheel, and no compiler."""
    given = os.environ.get("SLUICEGATE_WHEEL")
    wheel = Path(given).resolve() if given else wheel_of(copy_and_build_source(tmp_path_factory.mktemp("source")))
    places = [str(wheel.parent), *os.environ.get("PIP_FIND_LINKS", "").split()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_FIND_LINKS", " ".join(places))
        patch.setenv("CC", "false")
        yield


@pytest.mark.usefixtures("wheels")
def test_with_pip_the_tutorial_works_without_a_compiler(tmp_path: Path) -> None:
    reader = Reader(tmp_path, "127.0.0.1:9092", furnished=False)
    try:
        for block in blocks_of(DOCS / "tutorial.md"):
            reader.run_block(block)
    finally:
        reader.stop()


@pytest.mark.usefixtures("wheels")
def test_with_systemd_the_service_of_the_page_starts_reloads_and_ends(kafka_bootstrap: str, tmp_path: Path) -> None:
    """Folders are below `tmp_path`. systemd checks the unit, and the test itself runs the commands of the unit."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: `make test-tools`")
    page = blocks_of(DOCS / "install.md")
    (unit,) = [path_below_root(block, tmp_path) for block in page if block.language == "ini"]
    (installation,) = [
        path_below_root(block, tmp_path) for block in page if block.text.startswith("python3 -m venv /opt/")
    ]
    reader = Reader(tmp_path, kafka_bootstrap, furnished=False)

    reader.run_block(installation)
    file = tmp_path / "sluicegate.service"
    file.write_text(unit.text)
    found = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False).stderr
    commands = dict(re.findall(r"^(Exec\w+)=(.*)$", unit.text, re.MULTILINE))
    first = free_ports(8)
    own = {
        "SLUICEGATE__LISTEN__BOOTSTRAP": f"127.0.0.1:{first}",
        "SLUICEGATE__LISTEN__BROKER_PORT_BASE": str(first + 2),
        "SLUICEGATE__ADMIN__LISTEN": f"127.0.0.1:{first + 1}",
    }
    subprocess.run(commands["ExecStartPre"].split(), cwd=tmp_path, check=True)
    log = tmp_path / "log"
    with log.open("wb") as output:
        service = subprocess.Popen(
            killed_with_parent(commands["ExecStart"].split()),
            cwd=tmp_path, env=os.environ | own, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        ready = ["curl", "-s", f"http://127.0.0.1:{first + 1}/readyz"]
        eventually(lambda: b"serving" in subprocess.run(ready, capture_output=True, check=False).stdout, 120)
        assert commands["ExecReload"].startswith("/bin/kill -HUP")
        configuration = tmp_path / "etc/sluicegate/sluicegate.yaml"
        configuration.write_text(configuration.read_text().replace("mode: observe", "mode: reject"))
        service.send_signal(signal.SIGHUP)
        eventually(lambda: "configuration reloaded" in log.read_text(), 60)
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0
    finally:
        service.kill()
        service.wait()

    assert [line for line in found.splitlines() if "sluicegate.service" in line] == []


def path_below_root(block: Block, root: Path) -> Block:
    """Return the block with folders of the machine below `root`."""
    return replace(block, text=re.sub(r"(?<![\w.])/(opt|etc)/", rf"{root}/\1/", block.text))


def test_with_helm_the_packed_chart_renders_the_values_of_the_page(tmp_path: Path) -> None:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed: `make test-tools`")
    subprocess.run([ROOT / "scripts/release/chart", "package", tmp_path], capture_output=True, check=True)
    (package,) = tmp_path.glob("*.tgz")
    page = blocks_of(DOCS / "how-to/kubernetes-helm.md")
    for block in page:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text)
    commands = [
        line for block in page for line in block.text.splitlines() if re.match(r"helm (install|upgrade) ", line)
    ]
    kinds = []

    for command in commands:
        local = re.sub(r"^helm \w+", "helm template", re.sub(r"oci://\S+ --version \S+", str(package), command))
        done = subprocess.run(local.split(), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (tmp_path / "rendered").write_text(done.stdout)
        found = yaml_documents(tmp_path / "rendered")
        check_ports_match(found)
        assert "sluicegate" in {service["metadata"]["name"] for service in documents_of_kind(found, "Service")}
        kinds.append({document["kind"] for document in found})

    first, monitored = kinds
    assert monitored - first == {"PrometheusRule", "ServiceMonitor"}  # a new cluster does not have these types


@pytest.mark.parametrize("page", ["container", "compose"])
def test_the_container_and_compose_pages_work_when_followed(page: str, tmp_path: Path) -> None:
    """The pages name their containers and Kafka's port 9092, so the test does not replace these."""
    image = os.environ.get("SLUICEGATE_IMAGE")
    plugin = ["docker", "compose", "version"] if page == "compose" else ["docker", "version"]
    if image is None or shutil.which("docker") is None or subprocess.run(plugin, check=False).returncode:
        pytest.skip("needs Docker with compose, and SLUICEGATE_IMAGE, an image that `make image` built")
    named = re.compile(rf"{re.escape(PUBLISHED['IMAGE'])}:[\w.]+")
    reader = Reader(tmp_path, "127.0.0.1:9092", furnished=False)
    for block in blocks_of(DOCS / f"how-to/{page}.md"):
        reader.run_block(replace(block, text=named.sub(image, block.text)))
