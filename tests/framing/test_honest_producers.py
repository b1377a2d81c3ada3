"""With `framing: strict`, every client in the matrix produces with every codec and level without any report.

Short runs use the lowest and the highest level of each codec; with SLUICEGATE_THOROUGH, all levels are used.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.broker.proxy_process import ProxyProcess
from tests.clients.programs import BUILT
from tests.integration.java import java_tool
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD
from tests.wire.raw_client import RawClient

HERE = Path(__file__).parent
_IS_LONG = bool(os.environ.get("SLUICEGATE_THOROUGH"))
_WITHOUT_LEVELS = ("none", "gzip", "snappy", "lz4", "zstd")


def codecs_with_levels(**levels: Iterable[int]) -> list[str]:
    """Return every codec with its default level and these levels."""
    shown = {codec: [*those] if _IS_LONG else [min(those), max(those)] for codec, those in levels.items()}
    return [*_WITHOUT_LEVELS, *(f"{codec}:{level}" for codec, those in shown.items() for level in those)]


JAVA = codecs_with_levels(gzip=range(1, 10), lz4=range(1, 18), zstd=(-7, *range(1, 23)))
LIBRDKAFKA = codecs_with_levels(gzip=range(1, 10), lz4=range(1, 13), zstd=range(1, 13))
GO = {
    "franz": codecs_with_levels(gzip=range(1, 10), lz4=(1 << 9, 1 << 12, 1 << 17), zstd=range(1, 23)),
    "sarama": codecs_with_levels(gzip=range(1, 10), zstd=range(1, 23)),
}


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    settings = {"defaults": {"framing": "strict"}}
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, settings)
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture
def topic(kafka_bootstrap: str, proxy: ProxyProcess) -> Iterator[str]:
    """Yield a topic. The test fails if a batch for it was rejected or reported."""
    name = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    with RawClient(proxy.bootstrap) as client:
        client.metadata(name)  # known topics get their own label
    yield name
    shown = [line for line in proxy.get("/metrics")[1].splitlines() if f'topic="{name}"' in line]
    assert not [line for line in shown if "rejected" in line or "unreadable" in line], shown


@pytest.mark.long
@pytest.mark.parametrize("version", [KAFKA_NEW, KAFKA_OLD])
def test_java_produces_with_every_codec_and_level(version: str, topic: str, proxy: ProxyProcess) -> None:
    printed = java_tool(str(HERE / "JavaCodecs.java"), proxy.bootstrap, topic, *JAVA, version=version)

    assert printed.splitlines() == [f"Java {codec}" for codec in JAVA]


@pytest.mark.parametrize("library", ["librdkafka", "kafka-python", "aiokafka"])
def test_python_clients_produce_with_every_codec_and_level(library: str, topic: str, proxy: ProxyProcess) -> None:
    wanted = LIBRDKAFKA if library == "librdkafka" else _WITHOUT_LEVELS
    printed = run_for_output(sys.executable, str(HERE / "python_producer.py"), library, proxy.bootstrap, topic, *wanted)

    assert printed.splitlines() == [f"{library} {codec}" for codec in wanted]


@pytest.mark.parametrize("name", GO)
def test_go_clients_produce_with_every_codec_and_level(name: str, topic: str, proxy: ProxyProcess) -> None:
    program = BUILT / "go" / name
    if not program.exists():
        pytest.skip("requires Go; `make clients` builds it")
    for wanted in GO[name]:
        codec, _, level = wanted.partition(":")
        own = "-1000" if name == "sarama" else "0"
        run_for_output(str(program), proxy.bootstrap, "compressed", topic, codec, level or own)


def test_kcat_produces_with_every_codec_and_level(topic: str, proxy: ProxyProcess) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("requires kcat (a Debian package)")
    lines = "".join(f"k:{'v' * (i % 90)}\n" for i in range(200))
    for codec in _WITHOUT_LEVELS:
        compression = [] if codec == "none" else ["-z", codec]
        run_for_output("kcat", "-b", proxy.bootstrap, "-P", "-t", topic, "-K:", *compression, stdin=lines)


def run_for_output(*command: str, stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout
