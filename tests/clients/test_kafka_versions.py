"""Each installed Kafka release (.kafka) works behind the proxy, and rejects the batches that the proxy rejects.

`make kafkas` installs the releases in KAFKAS and writes the table in docs/compatibility.md.
"""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.figures import fill_in
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.clients.programs import PROGRAMS, Program
from tests.clients.table import COLUMNS
from tests.clients.test_matrix import COMPACTED, run_client_program
from tests.integration.topics import VALIDATED
from tests.oracle.kafka_java import ROOT

pytestmark = pytest.mark.long

VERSIONS = sorted(
    (place.parent.name for place in (ROOT / ".kafka").glob("[0-9]*/.complete")),
    key=lambda version: [int(part) for part in version.split(".")],
)
DRIVEN = ("Java kafka-clients 4.3", "Java kafka-clients 3.9", "confluent-kafka", "aiokafka", "franz-go")
CLIENTS = [program for program in PROGRAMS if program.name in DRIVEN and program.version is not None]
RESULTS = ROOT / "build/kafkas"
"""The folder for results. It contains a file for each client and release with the number of successful checks, because
several processes fill one table.
"""


@dataclass(frozen=True)
class BrokerAndProxy:
    """A broker and the proxy in front of it."""

    broker: Kafka
    proxy: ProxyProcess


@pytest.fixture(scope="module", params=VERSIONS)
def broker_and_proxy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerAndProxy]:
    folder = tmp_path_factory.mktemp(f"kafka-{request.param}")
    broker = Kafka(request.param, folder / "kafka")
    limits = {name: int(value) for name, value in VALIDATED.items()}
    try:
        broker.start()
        settings = {"defaults": limits, "topics": [{"match": "keyed-*", **COMPACTED}]}
        proxy = ProxyProcess(folder, broker.bootstrap, settings)
        try:
            yield BrokerAndProxy(broker, proxy.start())
        finally:
            proxy.stop()
    finally:
        broker.stop()


@pytest.fixture(scope="module", autouse=True)
def compatibility_table() -> Iterator[None]:
    """Write the page's table after all tests, in `make kafkas`."""
    yield
    if os.environ.get("SLUICEGATE_WRITE_KAFKAS"):
        RESULTS.mkdir(parents=True, exist_ok=True)
        with (RESULTS / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _write()


def _write() -> None:
    rows = [f"| Kafka | {' | '.join(f'{client.name} ({client.version})' for client in CLIENTS)} |"]
    rows.append(f"|---|{'---|' * len(CLIENTS)}")
    for version in VERSIONS:
        rows.append(f"| {version} | {' | '.join(_cell(version, client) for client in CLIENTS)} |")
    head = (
        f"`make kafkas` wrote this table on {datetime.now(UTC).date().isoformat()}. *Yes* means that the client\n"
        "produces with its defaults and with its strictest settings, consumes in a group, and creates and lists\n"
        "topics through the proxy. It also reports the same error for a rejected batch as with that broker."
    )
    fill_in(ROOT / "docs/compatibility.md", "kafka", head + "\n\n" + "\n".join(rows))


def _cell(version: str, client: Program) -> str:
    """Return whether a client did everything; "not run" if it was left out (PYTEST_ARGS)."""
    file = _result(version, client.name)
    return "not run" if not file.exists() else "yes" if int(file.read_text()) > len(COLUMNS) else "**no**"


def _result(version: str, client: str) -> Path:
    return RESULTS / f"{version} {client}"


@pytest.mark.parametrize("program", CLIENTS, ids=lambda program: program.name)
def test_a_client_works_with_each_release_and_reports_the_same_errors(
    program: Program, broker_and_proxy: BrokerAndProxy
) -> None:
    done: list[str] = []
    result = _result(broker_and_proxy.broker.version, program.name)
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text("0")

    def mark_passed(what: str) -> None:
        done.append(what)
        result.write_text(str(len(done)))

    assert run_client_program(program, broker_and_proxy.broker, broker_and_proxy.proxy, mark_passed)
    assert tuple(done) == COLUMNS
    result.write_text(str(len(COLUMNS) + 1))
