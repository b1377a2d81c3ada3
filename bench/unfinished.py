"""Keeps the measured loads of an interrupted benchmark for the next run of the same code."""

import json
from pathlib import Path
from typing import Any


class UnfinishedRun:
    """Keeps measurements in a file, load by load."""

    def __init__(self, folder: Path, commit: str | None) -> None:
        """Take `commit`, which is the commit of the code. None discards earlier measurements."""
        self._file, self._commit = folder / "unfinished.json", commit
        kept: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {}
        is_same = commit is not None and kept.get("commit") == commit
        self.runs: list[dict[str, Any]] = kept["runs"] if is_same else []
        self.seconds: float = kept["seconds"] if is_same else 0

    def has(self, load: str) -> bool:
        """Return whether all rounds of this load were measured."""
        return any(run["load"] == load for run in self.runs)

    def add(self, runs: list[dict[str, Any]], seconds: float) -> None:
        """Keep all rounds of one load. `seconds` is the duration of the benchmark so far."""
        self.runs += runs
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({"commit": self._commit, "seconds": seconds, "runs": self.runs}))

    def end(self) -> None:
        """Delete the kept measurements, because the results contain them."""
        self._file.unlink(missing_ok=True)
