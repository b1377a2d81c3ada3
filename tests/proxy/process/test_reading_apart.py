"""The configuration, read by another process: what it answers, and what is left of it."""

from pathlib import Path

import pytest

from sluicegate.proxy.process.config_file import ConfigFile
from sluicegate.proxy.process.reading_apart import Again, Reader, ReaderEnded, Start, Unusable, Usable
from tests.config.reading import SMALLEST


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(SMALLEST + "topics: [{match: orders, mode: observe}]\n")
    return path


def test_a_usable_file_comes_back_with_what_changes_are_looked_for_from(path: Path) -> None:
    file = ConfigFile(path, ())

    found = Reader(Again(file)).answer()

    assert isinstance(found, Usable)
    assert found.config.topics[0].mode == "observe"
    assert found.file is not None
    file.take(found.file)
    assert [file.has_changed() for _ in range(3)] == [False, False, False]


def test_what_cannot_be_used_is_told_problem_by_problem(path: Path) -> None:
    path.write_text(SMALLEST + "limits: {max_in_flight: many}\ndrain_seconds: soon\n")

    found = Reader(Again(ConfigFile(path, ()))).answer()

    assert isinstance(found, Unusable)
    assert [problem.split(": ")[1] for problem in found.problems] == ["limits.max_in_flight", "drain_seconds"]


def test_a_command_that_ends_by_itself_leaves_its_exit_code(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path.write_text("upstream: {")

    with pytest.raises(ReaderEnded) as ended:
        Reader(Start(("run", "--config", str(path)))).answer()

    assert ended.value.exit_code == 1
    assert capfd.readouterr().err.startswith(str(path))
