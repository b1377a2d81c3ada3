"""An executor that is killed during a job does not change its results."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.commands import ENVIRONMENT
from tests.pipeline.large_partition import COMMITTED_RECORDS, RECORDS_A_BATCH, damaged_records, large_partition

pytestmark = pytest.mark.long

_BATCHES = 150
NOW_MS = time.time_ns() // 1_000_000


def results_by(master: str, bootstrap: str, topic: str, folder: Path, *jobs: str) -> list[Any]:
    """Return the results of each job, undisturbed and disturbed."""
    command = [sys.executable, "-m", "tests.pipeline.lost_executors", master]
    ended = subprocess.run(
        [*command, bootstrap, topic, str(folder), str(NOW_MS), *jobs],
        capture_output=True,
        text=True,
        check=False,
        timeout=1400,
        env=ENVIRONMENT | {"PYSPARK_PYTHON": sys.executable},
    )
    assert ended.returncode == 0, ended.stdout[-1000:] + ended.stderr[-12000:]
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


@pytest.mark.timeout(1500)
def test_each_job_survives_a_lost_executor_with_equal_results(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = large_partition(kafka_bootstrap, NOW_MS, _BATCHES)
    jobs = ("profile", "audit", "plan", "write", "verify", "watch", "replay")

    *message, watched, replayed = results_by("local-cluster[2,1,1024]", kafka_bootstrap, topic, tmp_path, *jobs)

    assert [each["job"] for each in message] == ["profile", "audit", "plan", "verify"]
    for each in message:
        assert each["disturbed"] == each["undisturbed"], each["job"]
    assert message[-1]["disturbed"]["same"]  # the repair that was written while an executor was killed
    (counts,), copies = replayed["reported"][0].values(), replayed["reported"][1]
    assert copies == [counts["replayed"]] * 2
    assert counts["corrected"] == counts["replayed"] > 20_000
    damaged = damaged_records(_BATCHES)
    valid = _BATCHES * RECORDS_A_BATCH + COMMITTED_RECORDS - damaged.total()
    found = watched["disturbed"]
    found["zero"] += found.pop("implausible")  # in a batch with a base time of 0, later records are some ms later
    assert found == {"none": valid, **damaged}


@pytest.mark.timeout(1500)
def test_extract_and_violations_survive_a_lost_executor(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = large_partition(kafka_bootstrap, NOW_MS, _BATCHES, every=_BATCHES + 1)  # extract needs valid records

    message = results_by("standalone", kafka_bootstrap, topic, tmp_path, "extract", "violations")

    assert [each["job"] for each in message] == ["extract", "violations"]
    for each in message:
        assert each["disturbed"] == each["undisturbed"], each["job"]
    assert message[-1]["disturbed"]["events"] == 24 * 20
