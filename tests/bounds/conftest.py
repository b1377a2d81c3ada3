"""Stores the results at the end of `make bounds`."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.bounds.cases.rules import serve_schemas
from tests.bounds.measurement import SharedStages
from tests.bounds.stage import Stage, StageMaker
from tests.bounds.table import MEASURED, PAGE, merge_new_results, read_results, write_page, write_results

THOROUGH = "SLUICEGATE_THOROUGH" in os.environ


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedStages]:
    serve_schemas()
    made = SharedStages(tmp_path_factory.mktemp("bounds"), THOROUGH)
    yield made
    made.close()


@pytest.fixture
def stage_of(tmp_path: Path) -> Iterator[StageMaker]:
    """Return a function that starts a stage with the given settings. The stage stops after the test."""
    with ExitStack() as made:

        def start_stage(honest: bool = False, **settings: Any) -> Stage:
            stage = Stage(tmp_path / "stage", **settings)
            made.callback(stage.stop)
            return stage.start(honest)

        yield start_stage


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("SLUICEGATE_WRITE_BOUNDS") and MEASURED:
        write_results(merge_new_results(read_results(), MEASURED))
        write_page(PAGE, read_results())
