"""Sets up stages, which situations share in the short form, and the table at the end of `make load`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bounds.side_process import SideProcess
from tests.bounds.stage import HOST, Stage
from tests.load.measured import SituationResult, SituationRun
from tests.load.situations import Situation
from tests.load.table import MEASURED, write
from tests.oracle.kafka_java import ROOT

IS_LONG = "SLUICEGATE_LOAD" in os.environ


class LoadStages:
    """In the long form each situation has a fresh proxy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self._tls = False
        self._stage: Stage | None = None
        self._small: SideProcess | None = None
        self._crowd = SideProcess("tests.load.crowd").wait_ready()

    def measure(self, situation: Situation) -> SituationResult:
        """Once."""
        if IS_LONG or self._tls != situation.tls:
            self._leave()
        if self._stage is None or self._small is None:
            self._made += 1
            self._tls = situation.tls
            config = situation.config if IS_LONG else {}
            self._stage = Stage(self._folder / f"stage-{self._made}", "sound", config, situation.tls)
            self._stage.start(honest=False)
            settings = {"host": HOST, "port": self._stage.port(2), "ca_file": self._stage.ca_file}
            if not IS_LONG:  # next to other tests
                settings["pid"] = self._stage.pid
            self._small = SideProcess("tests.load.small_client", **settings).wait_ready()
        return SituationRun(situation, self._stage, self._small, self._crowd, IS_LONG).measure()

    def close(self) -> None:
        self._leave()
        self._crowd.stop()

    def _leave(self) -> None:
        if self._small is not None:
            self._small.stop()
            self._small = None
        if self._stage is not None:
            self._stage.stop()
            self._stage = None


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadStages]:
    made = LoadStages(tmp_path_factory.mktemp("load"))
    yield made
    made.close()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if IS_LONG and MEASURED and not session.config.getoption("keyword"):
        write(ROOT / "bench" / "results" / "reliability.md")
