"""A changed policy file is reported with its commit and author, as far as Git knows them."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from sluicegate.proxy.reload.git_commits import commits_of

AUTHOR = ("-c", "user.name=Ann\x1bÉ", "-c", "user.email=ann@example.com")


def run_git(folder: Path, *command: str) -> str:
    done = subprocess.run(["git", *AUTHOR, "-C", folder, *command], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """Return a repository whose folder `teams` contains the committed file orders.yaml."""
    folder = tmp_path / "repository" / "teams"
    folder.mkdir(parents=True)
    run_git(folder.parent, "init", "-q")
    (folder / "orders.yaml").write_text("topics: []\n")
    run_git(folder, "add", "orders.yaml")
    run_git(folder, "commit", "-qm", "First")
    return folder


def test_committed_file_is_reported_with_commit_and_author(policies: Path) -> None:
    file = policies / "orders.yaml"
    commit = run_git(policies, "rev-parse", "HEAD")[:12]
    (policies / "other.yaml").write_text("topics: []\n")
    run_git(policies, "add", "other.yaml")
    run_git(policies, "commit", "-qm", "Another file")

    assert commits_of([str(file)]) == {str(file): f"commit {commit} by Ann\\x1bÉ"}


def test_symlinked_file_has_commit_of_its_target_repository(policies: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(policies)

    assert commits_of([str(link / "orders.yaml")])[str(link / "orders.yaml")].startswith("commit ")


def test_self_referencing_symlink_has_no_commit(tmp_path: Path) -> None:
    link = tmp_path / "orders.yaml"
    link.symlink_to(link)

    assert commits_of([str(link)]) == {}


def test_uncommitted_change_is_reported_with_last_commit(policies: Path) -> None:
    file = policies / "orders.yaml"
    commit = run_git(policies, "rev-parse", "HEAD")[:12]
    file.write_text("topics: [{match: a}]\n")

    assert commits_of([str(file)]) == {str(file): f"changed after commit {commit} by Ann\\x1bÉ"}


def test_untracked_files_have_no_commit(policies: Path, tmp_path: Path) -> None:
    new, outside = policies / "new.yaml", tmp_path / "outside.yaml"
    new.write_text("")
    outside.write_text("")

    assert commits_of([str(new), str(outside), str(policies / "gone.yaml"), "/nowhere/at/all.yaml"]) == {}


def test_files_have_no_commit_if_git_is_not_installed(
    policies: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert commits_of([str(policies / "orders.yaml")]) == {}


def test_programs_configured_in_repository_are_not_run(policies: Path, tmp_path: Path) -> None:
    ran, script = tmp_path / "ran", tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "filter.f.clean", "diff.d.textconv"):
        run_git(policies, "config", key, str(script))
    run_git(policies, "config", "log.showSignature", "true")
    (policies / ".gitattributes").write_text("* filter=f diff=d\n")
    (policies / "orders.yaml").write_text("topics: [{match: b}]\n")

    assert len(commits_of([str(policies / "orders.yaml")])) == 1
    assert not ran.exists()


def test_hanging_git_is_abandoned_after_timeout(
    policies: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()

    assert commits_of([str(policies / "orders.yaml")]) == {}
    assert time.monotonic() - began < 30
