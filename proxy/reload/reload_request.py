"""A request to reload the configuration now, and its result (`sluicegate reload`, `POST /api/reload`)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A policy file that has vanished. `topics`: the patterns whose last policies stay in force."""

    file: Path
    topics: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The result of a reload. `problems`: why it was rejected; `missing`: the files that are kept."""

    problems: Sequence[str] = ()
    missing: Sequence[MissingFile] = ()


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """A request that one reload completes. `accepts_removed`: policies of files that have vanished end."""

    accepts_removed: bool
    result: "asyncio.Future[ReloadResult]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
