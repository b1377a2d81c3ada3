"""The proxy that integration tests send through."""

from collections.abc import Iterator

import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.secure_brokers import guarded, mutual_broker, tls_proxy
from tests.integration.topics import DEFAULTS

__all__ = ["guarded", "mutual_broker", "tls_proxy"]  # fixtures


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """In front of one broker, with a day behind and an hour ahead."""
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, {"defaults": DEFAULTS})
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture(scope="module")
def cluster_proxy(cluster: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """In front of three brokers."""
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), cluster.bootstrap, {"defaults": DEFAULTS})
    try:
        yield process.start()
    finally:
        process.stop()
