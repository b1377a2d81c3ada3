"""An executor that is killed in the middle of a job changes nothing of what comes of it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pipeline.large_partition import large_partition


@pytest.mark.timeout(1500)
def test_each_job_comes_to_the_same(kafka_bootstrap: str, tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    topic = large_partition(kafka_bootstrap, now_ms)
    command = [sys.executable, "-m", "tests.pipeline.lost_executors", "local-cluster[2,1,1024]"]

    ended = subprocess.run(
        [*command, kafka_bootstrap, topic, str(tmp_path), str(now_ms)],
        capture_output=True,
        text=True,
        check=False,
        timeout=1400,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )

    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-8000:]
    told = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert [each["job"] for each in told] == ["profile", "judge", "plan", "verify"]
    for each in told:
        assert each["disturbed"] == each["undisturbed"], each["job"]
    assert told[-1]["disturbed"]["same"]  # what was written while an executor was killed
