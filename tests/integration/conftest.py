"""Provides the proxies and brokers of the integration tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.broker.eventually import eventually
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.secure_brokers import guarded, mutual_broker, tls_proxy
from tests.integration.strict_broker import strict_kafka
from tests.integration.topics import DEFAULTS
from tests.oracle.kafka_java import KAFKA_NEW
from tests.webui.browser import CHROMIUM
from tests.wire.raw_client import RawClient

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["guarded", "mutual_broker", "strict_kafka", "tls_proxy"]  # fixtures


@pytest.fixture(scope="package")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield three brokers that all files in one process share (tests/together.py)."""
    yield from run_kafka(Kafka(KAFKA_NEW, tmp_path_factory.mktemp("cluster"), size=3))


@pytest.fixture(scope="module")
def cluster(three_brokers: Kafka) -> Kafka:
    """Return the cluster of three brokers when all of them are running, because another file may have killed some."""

    def is_whole() -> bool:
        with RawClient(three_brokers.nodes[0].address) as client:
            return len(client.metadata()["brokers"]) == three_brokers.size

    eventually(is_whole, what="a complete cluster")
    return three_brokers


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy in front of one broker that allows a day in the past and an hour in the future."""
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, {"defaults": DEFAULTS})
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture(scope="module")
def cluster_proxy(cluster: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy in front of three brokers."""
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), cluster.bootstrap, {"defaults": DEFAULTS})
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture
def web_ui() -> Iterator["Page | None"]:
    """Yield a page in Chromium; None without Chromium. Playwright's event loop runs in this thread until the end."""
    if CHROMIUM is None:
        yield None
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # few test runs need it

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium.new_page()
        chromium.close()
