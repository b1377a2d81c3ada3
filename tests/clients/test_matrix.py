"""Each client works through the proxy, and reports the same error after a rejection as with a broker."""

import re
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.clients.programs import COUNT, PROGRAMS, Program
from tests.clients.table import ROWS, ClientRow
from tests.conformance.differences import without_diagnosis
from tests.integration.topics import UNVALIDATED, VALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW

# Each of these clients shares most of its code with a client in the short form: with another release, or with aiokafka.
_LONG = ("Java kafka-clients 4.4", "Java kafka-clients 3.9", "kafka-python")
COMPACTED = {"cleanup.policy": "compact"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("kafka"))
    try:
        yield kafka.start()
    finally:
        kafka.stop()


@pytest.fixture(scope="module")
def proxy(broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    limits = {name: int(value) for name, value in VALIDATED.items()}
    settings = {"defaults": limits, "topics": [{"match": "keyed-*", **COMPACTED}]}
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), broker.bootstrap, settings)
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, marks=pytest.mark.long if program.name in _LONG else (), id=program.name)
        for program in PROGRAMS
    ],
)
def test_a_client_works_through_the_proxy_and_reports_the_same_errors(
    program: Program, broker: Kafka, proxy: ProxyProcess
) -> None:
    row = ROWS.setdefault(program.name, ClientRow(program.name, program.version, program.requirements))
    if program.version is None:
        pytest.skip(f"requires {program.requirements}")
    row.rejection = run_client_program(program, broker, proxy, row.passed)


def run_client_program(
    program: Program, broker: Kafka, proxy: ProxyProcess, passed: Callable[[str], None]
) -> list[str]:
    """Use a client in every way of the matrix, `passed` after each; return its errors after a rejection."""
    topic = create_topic(broker.bootstrap, UNVALIDATED, partitions=1)
    made = f"made-{uuid.uuid4().hex[:8]}"

    for label in ("default", "strict"):
        program.run(f"produce-{label}", proxy.bootstrap, topic)
        passed(f"produce, {label}")
    read = program.run("consume", proxy.bootstrap, topic, str(2 * COUNT)).splitlines()
    assert read == [f"{label} {i}" for label in ("default", "strict") for i in range(COUNT)]
    passed("consume in a group")
    program.run("create", proxy.bootstrap, made)
    passed("create a topic")
    assert made in program.run("topics", proxy.bootstrap, made)
    passed("list topics")

    validated = create_topic(broker.bootstrap, VALIDATED | COMPACTED, partitions=1, prefix="keyed")
    unvalidated = create_topic(broker.bootstrap, UNVALIDATED, partitions=1, prefix="keyed")
    direct = program.run("reject", broker.bootstrap, validated)
    through = program.run("reject", proxy.bootstrap, unvalidated)

    assert lines_without_varying_parts(through, unvalidated) == lines_without_varying_parts(direct, validated)
    assert re.search(r"timestamp|INVALID_RECORD|invalid record|failed to validate", through, re.IGNORECASE), through
    return lines_without_varying_parts(through, unvalidated)


def lines_without_varying_parts(output: str, topic: str) -> list[str]:
    """Return the lines without topic name, times, ports, progress output and the diagnosis appended by sluicegate."""
    text = re.sub(r"\d{10,}", "N", output.replace(topic, "TOPIC"))
    text = re.sub(r"127\.0\.0\.1:\d+", "BROKER", re.sub(r"%\d\|[\d.]+\|", "", text))
    return sorted({without_diagnosis(line.strip()) for line in text.splitlines() if line.strip()})
