"""Runs the notebook of the Python API cell by cell and checks its findings."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.kafka_java import ROOT

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
NOTEBOOK = ROOT / "docs" / "notebooks" / "pipeline.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_notebook_cells_run_and_show_expected_findings(
    spark: SparkSession, kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOOTSTRAP", kafka_bootstrap)
    names: dict[str, Any] = {"__name__": "__main__"}

    for cell in CELLS:
        exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}, {cell['id']}", "exec"), names)

    assert names["damage"] == {"seconds": 6, "nanoseconds": 6}
    assert names["by_unit"] == {"seconds": 6, "nanoseconds": 6}
    assert [row["offset"] for row in names["in_sql"]] == [n for n in range(300) if n % 50 in (7, 23)]
    assert names["in_sql"][0]["it"] == "looks like nanoseconds: as milliseconds it is 4.9 h ago"
    assert names["rejected"]["bad_records"] == 12
    assert sum(row["count"] for row in names["hourly"]) == 300 - 12
    assert (names["clean"].summary["written_by_this_run"], names["compared"].is_same) == (300, True)
    assert names["compared"].summary["repairs"] == {"seconds": 6, "nanoseconds": 6}
    assert names["spark"] is spark


def test_the_notebook_is_stored_without_outputs() -> None:
    assert [cell["id"] for cell in CELLS if cell["outputs"] or cell["execution_count"] is not None] == []
