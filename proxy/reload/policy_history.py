"""Keeps the latest policy changes while the proxy runs, for the web UI (`/api/policy-changes`)."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sluicegate.proxy.reporting.bounded_text import cut

MOST_KEPT = 20
_MOST_FILES = 20


@dataclass(frozen=True, slots=True)
class PolicyReload:
    """The changes of one reload, which took effect at `time_ms` (Unix time).

    `files` contains each changed file's SHA-256, or None if the file was removed. `changes` contains lines by their
    effect on producers, or is None if the configurations were not compared. `count` is the total number of changes.
    `commits` contains the commit and author of each file that Git knows.
    """

    time_ms: int
    files: Mapping[str, str | None]
    changes: Mapping[str, list[str]] | None = None
    count: int = 0
    commits: Mapping[str, str] = field(default_factory=dict)

    @property
    def named_files(self) -> list[str]:
        """The files, each with its commit."""
        return [f"{name} ({self.commits[name]})" if name in self.commits else name for name in self.files]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the API (docs/web-ui.md)."""
        lines = self.changes if self.changes is not None else {}
        files = list(self.files.items())
        return {
            "time_ms": self.time_ms,
            "files": [
                {"file": name, "sha256": digest, "commit": self.commits.get(name)}
                for name, digest in files[:_MOST_FILES]
            ],
            "other_files": len(files[_MOST_FILES:]),
            "count": self.count,
            "compared": self.changes is not None,
            **{effect: [cut(line) for line in lines.get(effect, ())] for effect in ("stricter", "looser", "changed")},
        }


class PolicyHistory:
    """The last reloads that changed policies, at most `MOST_KEPT`.

    Thread-safe. `on_added` is also called with each of them.
    """

    def __init__(self) -> None:
        self._kept: deque[PolicyReload] = deque(maxlen=MOST_KEPT)
        self.on_added: Callable[[PolicyReload], None] = lambda _: None

    def add(self, reload: PolicyReload) -> None:
        """Add the newest reload. Drop the oldest if there are too many."""
        self._kept.append(reload)
        self.on_added(reload)

    def as_json(self) -> list[dict[str, Any]]:
        """Return all reloads, newest first, as JSON objects."""
        return [each.as_json() for each in reversed(tuple(self._kept))]
