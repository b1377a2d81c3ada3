"""Runs the parts of `make bench` that have no result for this code yet.

Run: python -m bench.resumed MODULE [ARGUMENT...] measures one part, and python -m bench.resumed names the parts without
a result.
"""

import json
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.figures import RESULTS

PARTS: Mapping[str, str] = {
    "bench": "bench.json",
    "bench.live_instructions": "live.json",
    "bench.live_rules": "live_rules.json",
    "bench.encrypted": "encrypted.json",
}
"""The file in bench/results that each part writes."""
_ROOT = Path(__file__).parent.parent
_CODE = ("protocol", "validation", "config", "proxy", "sluicegate", "setup.py", "pyproject.toml", "uv.lock", "bench")
_RESULTS = ":(exclude)bench/results"


def commit_of_code(root: Path = _ROOT) -> str | None:
    """Return the last commit that changed the measured code or the benchmarks.

    Returns None if a part of them has uncommitted changes.
    """
    paths = ["--", *_CODE, _RESULTS]
    changed = _git(root, "status", "--porcelain", *paths)
    return None if changed else _git(root, "log", "-1", "--format=%H", *paths)


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Measured:
    """The commits that the parts' results belong to, in a file next to the results."""

    def __init__(self, folder: Path, commit: str | None) -> None:
        self._folder, self._commit = folder, commit
        self._file = folder / "commits.json"

    def left(self) -> list[str]:
        """Return the parts that have no result for this commit."""
        return [part for part in PARTS if not self.has(part)]

    def has(self, part: str) -> bool:
        """Return whether the part has a result for this commit."""
        is_there = (self._folder / PARTS[part]).exists()
        return is_there and self._commit is not None and self._commits().get(part) == self._commit

    def add(self, part: str) -> None:
        """Record that the part has a result for this commit. Uncommitted code is measured each time."""
        self._file.write_text(json.dumps(self._commits() | {part: self._commit}, indent=1) + "\n")

    def _commits(self) -> dict[str, str | None]:
        commits: dict[str, str | None] = json.loads(self._file.read_text()) if self._file.exists() else {}
        return commits


def main(arguments: list[str]) -> None:
    """Measure the part unless it has a result, or name the parts without a result."""
    measured = Measured(RESULTS, commit_of_code())
    if not arguments:
        print("Left to measure:", ", ".join(measured.left()) or "nothing")
        return
    part, *_ = sys.argv[:] = arguments
    if measured.has(part):
        print(f"{part}: bench/results has its result of this commit")
        return
    runpy.run_module(part, run_name="__main__", alter_sys=True)
    measured.add(part)


if __name__ == "__main__":
    main(sys.argv[1:])
