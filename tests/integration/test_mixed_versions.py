"""In a rolling upgrade and a rollback, proxies of two versions of sluicegate serve the same clients at the same time.

The older version is the last release, or, while there is no release, the commit a hundred before this one. If that
commit cannot be imported, an older commit is used, because a series of commits is tested as a whole. The older version
runs interpreted, from a worktree of this repository.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.broker.proxy_process import ProxyProcess
from tests.integration.two_proxies import ClientsOfTwo, replace, two_proxies
from tests.oracle.kafka_java import ROOT

pytestmark = pytest.mark.long

_COMMITS_BACK = 100
_MOST_TRIED = 100
_RUN = """import sluicegate
assert sluicegate.__file__.startswith({tree!r}), sluicegate.__file__
from sluicegate.proxy.cli.main import main
main()"""
"""A program that runs sluicegate from a given tree, and fails if another sluicegate is imported."""


def _git(*arguments: str) -> str:
    """Return the output of git; empty if it fails, as in a source archive."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _older_commits() -> list[str]:
    """Return the commit of the last release before this commit, or else commits to try in turn.

    Skips the test if there is no commit. In a shallow clone the first one is the oldest commit.
    """
    release = _git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD~1")
    if release:
        return [_git("rev-parse", f"{release}^{{commit}}")]
    known = _git("rev-list", "--first-parent", f"--max-count={_COMMITS_BACK + _MOST_TRIED}", "HEAD").split()
    if len(known) < 2:
        pytest.skip("this tree has no earlier commit: clone with a depth of at least 2, better 101")
    return known[_COMMITS_BACK:] or known[-1:]


def _can_start(tree: Path) -> bool:
    modules = "sluicegate.proxy.server.server, sluicegate.proxy.reload.config_check"
    command = [sys.executable, "-P", "-c", f"import {modules}"]
    done = subprocess.run(command, env={"PYTHONPATH": str(tree)}, capture_output=True, check=False)
    return done.returncode == 0


@dataclass(frozen=True, slots=True)
class OlderVersion:
    """The tree of an older commit."""

    commit: str
    tree: Path

    def replace_command_of(self, proxy: ProxyProcess) -> None:
        """Make the next start of a proxy run this version."""
        proxy.command = [sys.executable, "-P", "-c", _RUN.format(tree=str(self.tree))]
        proxy.environment = {"PYTHONPATH": str(self.tree)}


@pytest.fixture
def older_version(tmp_path: Path) -> Iterator[OlderVersion]:
    commits, tree = iter(_older_commits()), tmp_path / "older"
    commit = next(commits)
    _git("worktree", "add", "--detach", str(tree), commit)
    assert (tree / "sluicegate").is_dir(), f"no worktree of {commit}"
    while not _can_start(tree):
        commit = next(commits)
        subprocess.run(["git", "-C", str(tree), "checkout", "--quiet", "--detach", commit], check=True)
    yield OlderVersion(commit, tree)
    _git("worktree", "remove", "--force", str(tree))


def test_a_rolling_upgrade_and_a_rollback_lose_nothing(
    kafka_bootstrap: str, tmp_path: Path, older_version: OlderVersion
) -> None:
    with two_proxies(kafka_bootstrap, tmp_path) as proxies:
        newer = [(proxy.command, proxy.environment) for proxy in proxies]
        for proxy in proxies:
            older_version.replace_command_of(proxy)
            proxy.start()
        clients = ClientsOfTwo(kafka_bootstrap, proxies)
        with clients.writing():
            for proxy, (command, environment) in zip(proxies, newer, strict=True):  # mixed from the second on
                proxy.command, proxy.environment = command, environment
                replace(proxy)
                clients.progress()
            for proxy in proxies:
                older_version.replace_command_of(proxy)
                replace(proxy)
                clients.progress()

        clients.check_nothing_is_lost()
