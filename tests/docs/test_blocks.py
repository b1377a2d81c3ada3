"""Each fenced block of README.md and docs/ works: configurations are checked, JSON is parsed, commands are typed."""

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

LANGUAGES = {
    *("sh", "yaml", "json", "python", "java", "go", "javascript", "c"),
    *("dockerfile", "ini", "properties", "text", ""),
}
"""The languages of blocks. Blocks without a language are drawings, and parts of a screen that is updated."""

NO_CONFIGURATION = {
    ("docs/how-to/policies-as-code.md", "# .github/workflows/policies.yaml"),
    ("docs/how-to/data-contracts.md", "# contracts/orders.odcs.yaml"),
    ("docs/how-to/data-contracts.md", "# contracts/payments.asyncapi.yaml"),
    ("docs/how-to/opentelemetry.md", "# collector.yaml"),
    ("docs/how-to/from-other-proxies.md", "# kroxylicious"),
    ("docs/how-to/kubernetes-helm.md", "# values.yaml"),
    ("docs/how-to/kubernetes-helm.md", "# monitoring.yaml"),
    ("docs/install.md", "# kubernetes.yaml"),
    ("docs/how-to/compose.md", "# compose.yaml"),
}
"""YAML for other programs, by page and first line. test_install.py, test_tutorials.py and tests/deploy check some."""

NOT_TYPED = {
    "make spark": "installs Spark; tests/pipeline/test_command.py runs the jobs",
    "sluicegate top ": "runs until it is stopped; tests/webui/test_live_proxy.py asks two workers",
    "sluicegate who ": "tests/webui/test_live_proxy.py asks a live proxy and its events",
    "sluicegate fleet ": "runs until it is stopped; tests/webui/test_in_chromium.py runs it for two proxies",
    "pip install sluicegate": "it is not published; tests/packaging/test_wheel.py installs the wheel",
    "pip install 'sluicegate[rules,topic]'": "it is not published, and tests/proxy/sandbox runs the command after it",
    "pip install 'sluicegate[demo]'": "it is not published; docs/install.md has the same first run",
    "sluicegate bootstrap 127.0.0.1:9092 --output": "tests/docs/test_install.py types it, in an empty folder",
    "make wheel": "builds images and needs a Kubernetes cluster; tests/packaging and tests/deploy check the parts",
    "make reproducible": "tests/packaging/test_release.py runs both commands",
    "sha256sum --check": "there is no release yet",
    "cosign verify ": "there is no published image yet",
    "docker build ": "needs a container engine",
    "docker run ": "needs a container engine and a published image",
    "kubectl create ": "needs a Kubernetes cluster; tests/docs/test_install.py checks the manifest",
    "systemctl ": "changes the machine; tests/docs/test_install.py compares the unit with deploy/systemd",
    "python3 -m venv /opt/sluicegate": "installs for the whole machine; test_tutorials.py installs elsewhere",
    "sluicegate --install-completion": "changes the user's shell; tests/proxy/cli/test_completion.py",
    "sluicegate-spark audit  --bootstrap": "needs bad records; tests/pipeline/test_replay_findings.py types both",
    **{
        f"sluicegate-spark {job} --bootstrap localhost:9092": "how-to/clean-a-topic.md is followed with this job"
        for job in ("profile", "advise", "audit", "repair", "verify", "replay", "watch")
    },
    "sluicegate-spark extract --bootstrap localhost:9092": "tests/pipeline/test_extract.py runs the job",
    "sluicegate-spark violations ": "needs events of a proxy; tests/pipeline/test_violations.py runs the job",
    "spark-submit ": "needs a cluster; tests/packaging/test_wheel.py runs the archive",
    "PYSPARK_PYTHON=./environment/bin/python spark-submit": "needs a cluster, and venv-pack",
    "pip install --only-binary": "it is not published; tests/packaging/test_wheel.py installs the wheel",
    "pip download ": "it is not published",
    **{
        f"sluicegate dead-letters {command}": "needs letters of other writers, which tests/dead_letters writes"
        for command in ("list", "validate orders.dlq", "redrive orders.dlq")
    },
    "python3 -m venv environment": "it is not published",
}
"""The reasons why blocks cannot be run here, by the beginning of the block."""

OLD_BROKERS = {"docs/how-to/kafka-4-hour.md"}
"""Pages about a cluster of Kafka 3."""
INSTALLED = {
    "docs/tutorial.md",
    *(f"docs/how-to/{name}.md" for name in ("container", "compose", "kubernetes-helm")),
}
"""Pages that begin with an installation: tests/docs/test_tutorials.py follows them."""

MINIMAL = """upstream: {bootstrap: ['kafka:9092']}
listen: {bootstrap: '127.0.0.1:19092', sasl.oauthbearer.sub.claim.name: sub}
topic_files: [{path: team.yaml, topics: "*", allow: [exempt, quotas]}]
"""
ELSEWHERE = ("registries:",)
"""Configurations that need another service; tests/registry tries these with a real registry."""


def reason_for_no_types(block: Block) -> str | None:
    return next((why for begins, why in NOT_TYPED.items() if block.text.startswith(begins)), None)


def blocks_in(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


CONFIGURATIONS = [
    block
    for block in blocks_in("yaml")
    if (block.page, block.first_line) not in NO_CONFIGURATION and not (block.file or "").endswith(".test.yaml")
]
WALKED = list(
    dict.fromkeys(
        block.page for block in blocks_in("sh") if reason_for_no_types(block) is None and block.page not in INSTALLED
    )
)


def test_every_block_has_a_known_language() -> None:
    assert [str(block) for block in BLOCKS if block.language not in LANGUAGES] == []


def test_every_excluded_block_still_exists() -> None:
    assert [begins for begins in NOT_TYPED if not any(block.text.startswith(begins) for block in blocks_in("sh"))] == []
    assert {(block.page, block.first_line) for block in blocks_in("yaml")} >= NO_CONFIGURATION


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=str)
def test_every_configuration_passes_the_check(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = create_named_files(block.text, tmp_path)
    if set(yaml.safe_load(text)) <= {"topics", "owner", "exempt", "quotas"}:  # a file that `topic_files` includes
        (tmp_path / "team.yaml").write_text(text)
        text = MINIMAL
    loaded = load(read_yaml(text, block.page), {})

    assert [warning for warning in loaded.warnings if not warning.endswith("matches no file")] == []  # not here
    if not any(word in text for word in ELSEWHERE):
        assert [str(flaw) for flaw in flaws_in(loaded.config) if flaw.is_error] == []


def create_named_files(text: str, folder: Path) -> str:
    """Create the files that a configuration names (certificates, keys, passwords), and return it with their paths."""
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


@pytest.mark.parametrize("block", blocks_in("json"), ids=str)
def test_every_json_block_is_valid(block: Block) -> None:
    rest = block.text.strip()
    while rest:
        _, end = json.JSONDecoder().raw_decode(rest)
        rest = rest[end:].lstrip()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Kafka]]:
    """Running brokers; True: the old version, which a page about an upgrade needs."""
    started: dict[bool, Kafka] = {}
    yield started
    for kafka in started.values():
        kafka.stop()


@pytest.mark.long
@pytest.mark.parametrize("page", WALKED)
def test_the_commands_of_a_page_print_the_output_that_it_shows(
    page: str, brokers: dict[bool, Kafka], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Follow the blocks in order: write files, type commands, compare the output."""
    is_old = page in OLD_BROKERS
    if is_old not in brokers:
        folder = tmp_path_factory.mktemp("kafka")
        brokers[is_old] = Kafka(KAFKA_OLD if is_old else KAFKA_NEW, folder).start()
    reader = Reader(tmp_path, brokers[is_old].bootstrap)
    try:
        for block in BLOCKS:
            if block.page == page and reason_for_no_types(block) is None:
                reader.run_block(block)
    finally:
        reader.stop()
