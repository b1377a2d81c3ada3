"""An advisory applies to the versions in its OSV record. A folder without advisories is an error."""

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from tests.oracle.kafka_java import ROOT
from tests.packaging.advisories import is_affected


def advisory_with_events(*events: dict[str, str], versions: tuple[str, ...] = ()) -> dict[str, object]:
    return {"id": "X-1", "affected": [{"ranges": [{"type": "ECOSYSTEM", "events": events}], "versions": versions}]}


# The first two are examples of the OSV schema.
@pytest.mark.parametrize(
    ("events", "outside", "inside"),
    [
        (({"introduced": "1.0.0"}, {"fixed": "1.0.2"}), ("0.9", "1.0.2", "3"), ("1.0.0", "1.0.1", "1.0.2rc1")),
        (({"introduced": "0"}, {"last_affected": "2.1.214"}), ("2.1.215", "2.2"), ("0.1", "2.1.214")),
        (({"introduced": "0"}, {"fixed": "1"}, {"introduced": "2"}), ("1", "1.9"), ("0.5", "2", "7")),
        (({"introduced": "0"},), (), ("0.1", "99")),
    ],
)
def test_an_affected_range_begins_and_ends_at_its_events(
    events: tuple[dict[str, str], ...], outside: tuple[str, ...], inside: tuple[str, ...]
) -> None:
    assert not any(is_affected(advisory_with_events(*events), Version(version)) for version in outside)
    assert all(is_affected(advisory_with_events(*events), Version(version)) for version in inside)


def test_a_listed_version_counts_without_a_range_and_commits_are_not_versions() -> None:
    listed = {"id": "X-2", "affected": [{"versions": ["1.0"], "ranges": [{"type": "GIT", "events": []}]}]}

    assert is_affected(listed, Version("1.0.0"))
    assert not is_affected(listed, Version("1.1"))


def run_audit(tmp_path: Path, requirements: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "locked.txt").write_text(requirements)
    command = [sys.executable, "-m", "tests.packaging.advisories", tmp_path / "locked.txt", tmp_path]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)


def test_an_applicable_advisory_fails_and_a_withdrawn_one_does_not(tmp_path: Path) -> None:
    (tmp_path / "vulns/some-library").mkdir(parents=True)
    affected = "affected: [{ranges: [{type: ECOSYSTEM, events: [{introduced: '0'}, {fixed: '2.0'}]}]}]\n"
    (tmp_path / "vulns/some-library/A.yaml").write_text(f"id: A\naliases: [CVE-1]\n{affected}")
    (tmp_path / "vulns/some-library/B.yaml").write_text(f"id: B\nwithdrawn: 2026-01-01T00:00:00Z\n{affected}")

    bad = run_audit(tmp_path, "Some_Library==1.9 \\\n    --hash=sha256:00\nother==1.0 ; sys_platform == 'linux'\n")
    good = run_audit(tmp_path, "some.library==2.0\n")
    two = run_audit(
        tmp_path, "some.library==1.9 ; python_version < '3.14'\nsome.library==2.0 ; python_version >= '3.14'\n"
    )

    assert bad.returncode == 1
    assert bad.stdout.splitlines() == [
        "some-library 1.9: A CVE-1",
        "1 of 1 advisories about 2 packages apply to the locked versions",
    ]
    assert (good.returncode, good.stdout[:8]) == (0, "0 of 1 a")
    assert (two.returncode, two.stdout.splitlines()[0]) == (1, "some-library 1.9: A CVE-1")


def test_a_folder_without_advisories_is_an_error(tmp_path: Path) -> None:
    done = run_audit(tmp_path, "library==1.0\n")

    assert done.returncode == 1
    assert "no advisories found; the folder must be a clone of" in done.stderr
