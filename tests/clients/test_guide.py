"""The programs in docs/clients-guide.md, run unchanged through the proxy, print what the page shows."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.clients.programs import BUILT
from tests.docs.blocks import Block, blocks_of
from tests.docs.shown import is_shown_in
from tests.integration.topics import UNVALIDATED, VALIDATED, create_topic
from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import KAFKA_NEW, ROOT, kafka_folder

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def broker_and_proxy_addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Yield the addresses of a broker without limits and of the proxy with limits."""
    folder = tmp_path_factory.mktemp("guide")
    broker = Kafka(KAFKA_NEW, folder / "kafka")
    try:
        broker.start()
        proxy = ProxyProcess(
            folder, broker.bootstrap, {"defaults": {name: int(value) for name, value in VALIDATED.items()}}
        )
        try:
            yield broker.bootstrap, proxy.start().bootstrap
        finally:
            proxy.stop()
    finally:
        broker.stop()


def _python(file: Path) -> list[str]:
    return [sys.executable, str(file)]


def _java(file: Path) -> list[str]:
    return java_command(kafka_folder(KAFKA_NEW), str(file))


def _go(file: Path) -> list[str]:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "tests/clients/go" / name, file.parent)
    subprocess.run(["go", "build", "-o", "program", file.name], cwd=file.parent, check=True, timeout=600)
    return [str(file.parent / "program")]


def _c(file: Path) -> list[str]:
    if shutil.which("cc") is None or not Path("/usr/include/librdkafka").exists():
        pytest.skip("a C compiler with librdkafka's headers: `make test-tools` installs them")
    program = file.with_suffix("")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", file, "-lrdkafka", "-o", program], check=True, timeout=120)
    return [str(program)]


def _javascript(file: Path) -> list[str]:
    node = shutil.which("node")
    if node is None or not (BUILT / "js/node_modules").exists():
        pytest.skip("Node.js with kafkajs: `make clients` installs it")
    return [node, str(file)]


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "python": _python,
    "java": _java,
    "go": _go,
    "c": _c,
    "javascript": _javascript,
}


PROGRAMS = [block for block in blocks_of(ROOT / "docs/clients-guide.md") if block.language in COMMANDS]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.file)
def test_a_program_prints_the_output_shown_on_the_page(
    program: Block, broker_and_proxy_addresses: tuple[str, str], tmp_path: Path
) -> None:
    assert program.file is not None
    assert program.shown is not None, "a `text` block with the output must follow the program"
    broker, proxy = broker_and_proxy_addresses
    topic = create_topic(broker, UNVALIDATED, partitions=1, prefix="guide")
    file = tmp_path / program.file
    file.write_text(program.text)

    done = subprocess.run(
        [*COMMANDS[program.language](file), proxy, topic],
        env=os.environ | {"NODE_PATH": str(BUILT / "js/node_modules")},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert is_shown_in(program.shown, done.stdout), (
        f"the page shows\n{program.shown}\nthe program printed\n{done.stdout}"
    )


def test_each_client_of_the_matrix_has_a_program() -> None:
    assert len(PROGRAMS) == 9
