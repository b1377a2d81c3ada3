"""A request to reload the configuration now, and its result (`sluicegate reload`, `POST /api/reload`)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A policy file that has disappeared. `topics` contains the patterns whose last policies stay in force."""

    file: Path
    topics: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The result of a reload.

    `problems` contains the reasons for a rejection. `missing` contains the missing files whose policies are kept.
    """

    problems: Sequence[str] = ()
    missing: Sequence[MissingFile] = ()


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """A request for a reload. If `accepts_removed` is true, the policies of missing files are removed."""

    accepts_removed: bool
    result: "asyncio.Future[ReloadResult]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
