"""Each fenced block of README.md and docs/ holds: configurations are checked, JSON is read, commands are typed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.proxy.reload.config_check import flaws_in
from tests.broker.certificates import Authority
from tests.broker.kafka import Kafka
from tests.docs.blocks import BLOCKS, Block
from tests.docs.walk import Reader
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD

LANGUAGES = {"sh", "yaml", "json", "python", "text", ""}
"""Without a name: drawings, and what is shown of a screen that moves."""

NO_CONFIGURATION = {
    "docs/how-to/policies-as-code.md": "# .github/workflows/policies.yaml",
    "docs/how-to/opentelemetry.md": "# collector.yaml",
    "docs/how-to/from-other-proxies.md": "# kroxylicious",
}
"""YAML of somebody else's, by its first line."""

NOT_TYPED = {
    "source .venv/bin/activate": "the tests' PATH has it",
    "make run     # the tour": "the tutorial types it, and these are the tests of the other line",
    "make spark": "installs Spark; tests/pipeline/test_command.py runs the jobs",
    "sluicegate top ": "shows until it is ended; tests/webui/test_live_proxy.py asks two workers",
    "sluicegate who ": "tests/webui/test_live_proxy.py asks a live proxy and its events",
    "pip install sluicegate": "it is not published; tests/packaging/test_wheel.py installs the wheel",
    "sluicegate bootstrap 127.0.0.1:9092 --output": "tests/docs/test_install.py types it, in an empty folder",
    "make image": "needs a container engine",
    "docker compose ": "needs a container engine; tests/deploy/test_compose.py holds it to the configuration",
    "helm install ": "needs a Kubernetes cluster",
    "kubectl apply ": "needs a Kubernetes cluster; tests/deploy/test_kubernetes.py reads the manifests",
    "python3 -m venv /opt/sluicegate": "installs for the whole machine; tests/deploy/test_systemd.py reads the unit",
    "sluicegate --install-completion": "changes the user's shell; tests/proxy/cli/test_completion.py",
    "sluicegate-spark audit  --bootstrap": "needs bad records; tests/pipeline/test_replay_findings.py types both",
    "spark-submit ": "needs a cluster; tests/packaging/test_wheel.py runs the archive",
}
"""By how a block begins: why it cannot be typed here."""

OLD_BROKERS = {"docs/how-to/kafka-4-hour.md"}
"""Pages about a cluster of Kafka 3."""

MINIMAL = "upstream: {bootstrap: ['kafka:9092']}\nlisten: {bootstrap: '127.0.0.1:19092'}\n"
ELSEWHERE = ("registries:",)
"""What is asked of others than us; tests/registry tries these with a real registry."""


def why_not_typed(block: Block) -> str | None:
    return next((why for begins, why in NOT_TYPED.items() if block.text.startswith(begins)), None)


def of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


CONFIGURATIONS = [block for block in of("yaml") if NO_CONFIGURATION.get(block.page) != block.first_line]
WALKED = list(dict.fromkeys(block.page for block in of("sh") if why_not_typed(block) is None))


def test_every_block_says_what_it_is() -> None:
    assert [str(block) for block in BLOCKS if block.language not in LANGUAGES] == []


def test_every_exception_is_needed() -> None:
    assert [begins for begins in NOT_TYPED if not any(block.text.startswith(begins) for block in of("sh"))] == []
    assert {(block.page, block.first_line) for block in of("yaml")} >= set(NO_CONFIGURATION.items())


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=str)
def test_every_configuration_passes_the_check(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = with_files(block.text, tmp_path)
    if set(yaml.safe_load(text)) == {"topics"}:  # a file that `topics_from` names
        text = MINIMAL + text
    loaded = load(read_yaml(text, block.page), {})

    assert [warning for warning in loaded.warnings if not warning.endswith("leads to no file")] == []  # not here
    if not any(word in text for word in ELSEWHERE):
        assert [str(flaw) for flaw in flaws_in(loaded.config) if flaw.is_error] == []


def with_files(text: str, folder: Path) -> str:
    """With the files there that it names: certificates, their keys, passwords."""
    text = re.sub(r"(_file: )/\S*/", r"\1", text)
    authority = Authority(folder)
    certificate = authority.sign("server")
    contents = {
        "certificate": certificate.chain,
        "key": certificate.key,
        "ca": authority.file,
        "client_ca": authority.file,
    }
    for kind, name in re.findall(r"\b(\w+)_file: ([^\s,}]+)", text):
        (folder / name).write_bytes(contents[kind].read_bytes() if kind in contents else b"secret\n")
    return text


@pytest.mark.parametrize("block", of("json"), ids=str)
def test_every_json_is_read(block: Block) -> None:
    for line in block.text.splitlines():
        json.loads(line)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Kafka]]:
    """By whether it is the old one, which a page needs that tells of an upgrade."""
    started: dict[bool, Kafka] = {}
    yield started
    for kafka in started.values():
        kafka.stop()


@pytest.mark.parametrize("page", WALKED)
def test_a_reader_can_follow_the_page(
    page: str, brokers: dict[bool, Kafka], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its blocks in their order: files are written, commands typed, and what is shown comes."""
    is_old = page in OLD_BROKERS
    if is_old not in brokers:
        folder = tmp_path_factory.mktemp("kafka")
        brokers[is_old] = Kafka(KAFKA_OLD if is_old else KAFKA_NEW, folder).start()
    reader = Reader(tmp_path, brokers[is_old].bootstrap)
    try:
        for block in BLOCKS:
            if block.page == page and why_not_typed(block) is None:
                reader.follows(block)
    finally:
        reader.stop()
