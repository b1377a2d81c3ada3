"""Selects the seeds: a few in `make test`, and the requested number in `make faults`, which writes the table.

Runs may be in parallel processes; each outcome is reported to the process that started them.
"""

import os
from collections.abc import Iterator

import pytest

from tests.faults.setting import RelayedCluster, cluster_in
from tests.faults.table import OUTCOME, OUTCOMES, RunOutcome, write_table
from tests.oracle.kafka_java import ROOT

_RUNS = int(os.environ.get("SLUICEGATE_FAULTS_RUNS", "0"))
_FIRST = int(os.environ.get("SLUICEGATE_FAULTS_SEED", "1"))
# These cause relay faults on both sides, a suspended broker, a killed worker, a killed proxy and clock jumps. Seed 9
# takes three times as long as 2.
_FEW = (2, pytest.param(9, marks=pytest.mark.long))
SEEDS = range(_FIRST, _FIRST + _RUNS) if _RUNS else _FEW


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayedCluster]:
    with cluster_in(tmp_path_factory.mktemp("cluster")).running() as made:
        yield made


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        for name, value in report.user_properties:
            if name == OUTCOME:
                OUTCOMES.append(RunOutcome.from_properties(value))
                if _RUNS:
                    print(f"\n{OUTCOMES[-1].summary()}", flush=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    is_one_of_several = hasattr(session.config, "workerinput")
    if os.environ.get("SLUICEGATE_WRITE_FAULTS") and OUTCOMES and not is_one_of_several:
        write_table(ROOT / "bench" / "results" / "reliability.md", session.config.getoption("numprocesses") or 1)
