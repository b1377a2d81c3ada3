"""Provides the tests' broker: `KAFKA_BOOTSTRAP` if set, otherwise a container if Docker runs, otherwise Maven's jars.

The conformance suite always uses Maven's brokers, because it needs two brokers with different settings and an old
release.
"""

import os
from collections.abc import Iterator

import pytest

from tests.broker.container import IMAGE, docker_is_running, running_container
from tests.broker.kafka import Kafka
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_NEWEST, KAFKA_OLD

_USUAL_RELEASES = (KAFKA_NEW, pytest.param(KAFKA_OLD, marks=pytest.mark.long))
_NEWEST_RELEASE = pytest.param(KAFKA_NEWEST, marks=pytest.mark.long)
EVERY_RELEASE_IF_THOROUGH = pytest.mark.parametrize(
    "kafka_version",
    [*_USUAL_RELEASES, *((_NEWEST_RELEASE,) if os.environ.get("SLUICEGATE_THOROUGH") else ())],
    indirect=True,
    scope="session",
)
"""Compares with the newest release only in `make conformance`, because this would add a minute to each CI run."""


def pytest_report_header() -> str:
    if os.environ.get("KAFKA_BOOTSTRAP"):
        return f"broker: {os.environ['KAFKA_BOOTSTRAP']} (KAFKA_BOOTSTRAP)"
    return f"broker: container {IMAGE}" if docker_is_running() else f"broker: Kafka {KAFKA_NEW} from Maven"


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of one real broker."""
    given = os.environ.get("KAFKA_BOOTSTRAP")
    if given:
        yield given
    elif docker_is_running():
        yield from running_container()
    else:
        yield from (kafka.bootstrap for kafka in run_kafka(Kafka(KAFKA_NEW, tmp_path_factory.mktemp("kafka"))))


@pytest.fixture(scope="session", params=[*_USUAL_RELEASES, _NEWEST_RELEASE])
def kafka_version(request: pytest.FixtureRequest) -> str:
    """Return a Kafka release with which responses are compared. The short form only uses the release of most tests."""
    version: str = request.param
    return version


@pytest.fixture(scope="session")
def validating_broker(kafka_version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a broker whose topics have the limits; it is the oracle."""
    yield from run_kafka(Kafka(kafka_version, tmp_path_factory.mktemp("validating")))


@pytest.fixture(scope="session")
def trusting_broker(kafka_version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield the broker behind the proxy, whose topics have no limits."""
    yield from run_kafka(Kafka(kafka_version, tmp_path_factory.mktemp("trusting")))


def run_kafka(kafka: Kafka) -> Iterator[Kafka]:
    """Start a broker and stop it at the end."""
    try:
        yield kafka.start()
    finally:
        kafka.stop()
