"""Checks that the measurements work: the short form of `make bench`, and figures that need no clock."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.figures import Figure
from bench.one_session import schemas_used
from tests.oracle.java_program import SHORT_LIVED, class_archive_options
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder

ROOT = Path(__file__).parent.parent.parent


async def test_a_produce_request_and_its_response_use_no_construct_schema() -> None:
    assert await schemas_used(10) == 0


@pytest.mark.parametrize(
    ("value", "at_least", "met"),
    [(0.9, False, True), (1.0, False, True), (1.1, False, False), (0.9, True, False), (1.0, True, True)],
)
def test_a_figure_equal_to_its_bound_meets_the_goal(value: float, at_least: bool, met: bool) -> None:
    assert Figure("f", "l", value, "", 1.0, at_least).is_reached is met


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_short_benchmark_writes_every_figure_and_plot(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--short", "--out", str(tmp_path)]
    # A JVM with the tests' options, because this test does not measure the JVM's speed.
    java = {"JAVA_TOOL_OPTIONS": " ".join([*class_archive_options(kafka_folder(KAFKA_NEW)), *SHORT_LIVED])}
    completed = subprocess.run(command, cwd=ROOT, env=os.environ | java, capture_output=True, text=True, check=False)

    assert completed.returncode == 0, completed.stderr[-4000:]
    raw = json.loads((tmp_path / "raw.json").read_text())
    targets = {"direct", "bare relay", "sluicegate unchecked", "sluicegate", "sluicegate, 4 workers"}
    loads = {run["load"] for run in raw["runs"]}
    assert len(loads) == 6
    assert {(run["load"], run["target"]) for run in raw["runs"]} == {(load, t) for load in loads for t in targets}
    rows = json.loads((tmp_path / "bench.json").read_text())
    assert all(set(row) == {"figure", "load", "value", "unit", "goal", "met"} for row in rows)
    assert {row["figure"] for row in rows if row["goal"] is not None} >= {
        "CPU per one-record request : bare relay",
        "throughput, all checks : bare relay",
        "memory for one more idle connection",
    }
    assert list(tmp_path.glob("*.svg"))
