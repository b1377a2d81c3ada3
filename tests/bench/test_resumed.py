"""`make bench` measures only the parts and loads that have no result for the current code."""

import json
import subprocess
from pathlib import Path

import pytest

from bench.__main__ import Bench, Extent
from bench.resumed import PARTS, Measured, commit_of_code
from bench.streams import Run
from bench.targets import Target
from bench.unfinished import UnfinishedRun


def run_git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.com")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit_all(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    run_git(folder, "add", name)
    run_git(folder, "commit", "-m", "change")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run_git(tmp_path, "init")
    commit_all(tmp_path, "proxy/__init__.py", "1")
    return tmp_path


def test_result_files_and_pages_are_not_part_of_the_measured_code(repository: Path) -> None:
    before = commit_of_code(repository)

    commit_all(repository, "bench/results/bench.json", "{}")
    commit_all(repository, "docs/performance.md", "figures")

    assert before is not None
    assert commit_of_code(repository) == before


@pytest.mark.parametrize("name", ["proxy/__init__.py", "bench/streams.py", "uv.lock"])
def test_changed_code_has_no_commit_until_it_is_committed(repository: Path, name: str) -> None:
    before = commit_of_code(repository)
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text("2")

    uncommitted = commit_of_code(repository)
    commit_all(repository, name, "2")

    assert uncommitted is None
    assert commit_of_code(repository) not in (None, before)


def test_a_benchmark_with_a_result_of_this_commit_is_not_repeated(tmp_path: Path) -> None:
    measured = Measured(tmp_path, "this")
    (tmp_path / PARTS["bench.live_rules"]).write_text("[]")

    measured.add("bench.live_rules")
    measured.add("bench.encrypted")  # its result was removed

    assert measured.left() == ["bench", "bench.live_instructions", "bench.encrypted"]
    assert Measured(tmp_path, "another").left() == [*PARTS]


def test_a_benchmark_of_uncommitted_code_is_always_repeated(tmp_path: Path) -> None:
    measured = Measured(tmp_path, None)
    (tmp_path / PARTS["bench"]).write_text("[]")

    measured.add("bench")

    assert "bench" in measured.left()


class StubBench(Bench):
    """A benchmark that measures nothing and is interrupted at one load."""

    def __init__(self, kept: UnfinishedRun, interrupted_at: str = "") -> None:
        extent = Extent(1, 1, with_peers=False, streams=(), clients=(), idle_connections=(0, 0))
        super().__init__(extent, [Target("direct", "127.0.0.1:1", "127.0.0.1:1", None)], "127.0.0.1:1", kept)
        self._interrupted_at = interrupted_at
        self.measured: list[str] = []

    def load(self, name: str) -> None:
        def run(_target: Target, _topic: str) -> Run:
            if name == self._interrupted_at:
                raise KeyboardInterrupt
            self.measured.append(name)
            return Run(megabytes=1, seconds=1)

        self._rounds(name, run)

    def _topic(self, settings: dict[str, str] | None = None) -> str:
        return "t"

    def _drop(self, topic: str) -> None:
        pass


def test_an_interrupted_benchmark_continues_with_the_remaining_loads(tmp_path: Path) -> None:
    first = StubBench(UnfinishedRun(tmp_path, "this"), interrupted_at="b")
    first.load("a")
    with pytest.raises(KeyboardInterrupt):
        first.load("b")

    kept = UnfinishedRun(tmp_path, "this")
    second = StubBench(kept)
    for name in ("a", "b"):
        second.load(name)

    assert second.measured == ["b"]
    assert [run["load"] for run in kept.runs] == ["a", "b"]
    assert second.seconds >= kept.seconds > 0
    kept.end()
    assert UnfinishedRun(tmp_path, "this").runs == []


@pytest.mark.parametrize("commit", ["another", None])
def test_loads_measured_on_another_commit_are_measured_again(tmp_path: Path, commit: str | None) -> None:
    StubBench(UnfinishedRun(tmp_path, "this")).load("a")

    assert UnfinishedRun(tmp_path, commit).runs == []
    assert json.loads((tmp_path / "unfinished.json").read_text())["commit"] == "this"
