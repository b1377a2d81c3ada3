"""`sluicegate version` prints the facts that a bug report requires."""

import subprocess
from importlib.metadata import version

import pytest

from sluicegate.proxy.cli import build_facts
from tests.oracle.kafka_java import ROOT


def test_version_lists_the_libraries_that_validate() -> None:
    facts = dict(line.split(": ", 1) for line in list(build_facts.version_lines())[1:])

    assert f"lz4 {version('lz4')}" in facts["validated with"]
    assert f"google-re2 {version('google-re2')}" in facts["validated with"]
    assert facts["python"].split()[0].count(".") == 2


def test_version_prints_the_commit_of_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_REVISION", "0123456789abcdef0123")

    assert build_facts.commit_of_build() == "0123456789ab"


def test_an_invalid_commit_in_the_environment_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_REVISION", "not; a commit")

    assert build_facts.commit_of_build() is None


def test_the_commit_of_a_checkout_is_that_of_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICEGATE_REVISION", raising=False)
    if not (ROOT / ".git").is_dir():
        pytest.skip("no checkout: there is no .git here")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert build_facts.commit_of_build() == head[:12]
