"""Provides the Spark session that the pipeline's tests share."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.broker.proxy_process import ProxyProcess
from tests.integration.secure_brokers import guarded
from tests.pipeline.commands import end_kept
from tests.pipeline.session import SharedSession

__all__ = ["guarded"]  # a fixture


@pytest.fixture(scope="package", autouse=True)
def _kept_until_here() -> Iterator[None]:
    yield
    end_kept()
    SharedSession.stop()


@pytest.fixture(scope="package")
def spark() -> SparkSession:
    return SharedSession.get()


@pytest.fixture(scope="package")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy in front of one broker that allows timestamps up to an hour ahead."""
    limits = {"message.timestamp.after.max.ms": 3_600_000}
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, {"defaults": limits})
    try:
        yield process.start()
    finally:
        process.stop()
