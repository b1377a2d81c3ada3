"""Provides the two brokers, the proxy between them, and the table at the end."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.pair import proxy_settings
from tests.conformance.results import RESULTS


@pytest.fixture(scope="session")
def is_thorough() -> bool:
    """Return whether this is `make conformance`, which runs every version of every case, and all generated requests."""
    return bool(os.environ.get("SLUICEGATE_THOROUGH"))


@pytest.fixture(scope="package")
def proxy(trusting_broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy in front of the broker without limits. The proxy has the limits of the other broker."""
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), trusting_broker.bootstrap, proxy_settings())
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the results to the process that prints the table, if tests run in parallel."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["conformance"] = RESULTS.as_lists()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    RESULTS.add(getattr(node, "workeroutput", {}).get("conformance", [[], [], [], []]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if RESULTS.compared:
        terminalreporter.section("conformance: responses and logs of a broker compared with those through sluicegate")
        for line in RESULTS.table():
            terminalreporter.line(line)
