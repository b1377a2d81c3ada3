"""Finds the commits and authors of policy files in their folders' Git metadata, if there is any.

A file's content counts, not its name. A file that differs from the newest commit is reported as changed after that
commit.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from sluicegate.config.disk.deadline import within_deadline
from sluicegate.config.files.source import printable
from sluicegate.proxy.reporting.bounded_text import cut

_MOST_FILES = 20
_SECONDS, _SECONDS_OF_ALL = 2.0, 5.0
_ID_CHARACTERS = 12
_AUTHOR_CHARACTERS = 100
# With these options Git runs no program that a repository configures, and writes no lock.
_OPTIONS: Final = ("--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false")
_ENVIRONMENT: Final = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


def commits_of(files: Iterable[str]) -> dict[str, str]:
    """Return the newest commit for each of the first 20 files that Git knows, such as "commit 1a2b3c4d5e6f by Ann".

    Blocks for at most 13 s. Files that are not finished by then have no commit. The same applies to a folder without
    Git metadata, or a folder that Git does not trust.
    """
    git = shutil.which("git")
    if git is None:
        return {}
    end = time.monotonic() + _SECONDS_OF_ALL
    found: dict[str, str] = {}
    for name in islice(files, _MOST_FILES):
        commit = _commit_of(git, Path(name)) if time.monotonic() < end else None
        if commit is not None:
            found[name] = commit
    return found


def _commit_of(git: str, file: Path) -> str | None:
    try:
        # The Git metadata belongs to the folder of a link's target.
        file = within_deadline((file, "link"), file.resolve, _SECONDS)
    except (OSError, RuntimeError):  # RuntimeError is raised for a link that leads to itself
        return None
    written = _said(git, file, "log", "-1", "--format=%H%x00%an", "--", f"./{file.name}")
    if not written:
        return None
    commit, _, author = written.partition("\0")
    words = f"commit {commit[:_ID_CHARACTERS]} by {cut(printable(author), _AUTHOR_CHARACTERS)}"
    committed = _said(git, file, "rev-parse", f"{commit}:./{file.name}")
    is_same = committed and committed == _said(git, file, "hash-object", "--no-filters", "--", f"./{file.name}")
    return words if is_same else f"changed after {words}"


def _said(git: str, file: Path, *command: str) -> str:
    """Return a Git command's output in a file's folder, or an empty string if the command fails."""
    try:
        done = subprocess.run(  # noqa: S603  # fixed commands; a file's name follows -- or a colon
            [git, *_OPTIONS, "-C", str(file.parent), *command],
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_ENVIRONMENT},
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").strip("\n")
