"""The two brokers with a proxy between, and the table at the end."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.pair import proxy_settings
from tests.conformance.results import RESULTS


@pytest.fixture(scope="session")
def thorough() -> bool:
    """Whether this is `make conformance`: every version of every case, and all the generated requests."""
    return bool(os.environ.get("SLUICEGATE_THOROUGH"))


@pytest.fixture(scope="package")
def proxy(trusting_broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """In front of the broker that has no limits, with the limits of the one that has."""
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), trusting_broker.bootstrap, proxy_settings())
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where tests run side by side, the process that prints is another than those that compare."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["conformance"] = RESULTS.told()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    RESULTS.add(getattr(node, "workeroutput", {}).get("conformance", [[], [], [], []]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if RESULTS.compared:
        terminalreporter.section("conformance: a broker's own answers and logs against those through sluicegate")
        for line in RESULTS.table():
            terminalreporter.line(line)
