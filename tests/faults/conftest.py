"""Which seeds are run: a few in `make test`, as many as are asked for in `make faults`, which writes the table."""

import os
from collections.abc import Iterator

import pytest

from tests.faults.setting import RelayedCluster, cluster_in
from tests.faults.table import OUTCOMES, write
from tests.oracle.kafka_java import ROOT

_RUNS = int(os.environ.get("SLUICEGATE_FAULTS_RUNS", "0"))
_FIRST = int(os.environ.get("SLUICEGATE_FAULTS_SEED", "1"))
_FEW = (2, 9)  # relays on both sides, the clock, a broker that stands still, a worker and the proxy killed
SEEDS = range(_FIRST, _FIRST + _RUNS) if _RUNS else _FEW


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayedCluster]:
    with cluster_in(tmp_path_factory.mktemp("cluster")).running() as made:
        yield made


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("SLUICEGATE_WRITE_FAULTS") and OUTCOMES:
        write(ROOT / "docs" / "reliability.md")
