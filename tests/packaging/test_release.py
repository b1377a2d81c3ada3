"""Tests the scripts for a release (names, version, notes, chart and archives) and the workflows that call them."""

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.oracle.kafka_java import ROOT

SCRIPTS = ROOT / "scripts/release"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Next.

## [0.2.0] - 2027-01-31

### Fixed

- A fault.

## [0.1.0] - 2026-12-01

- The first.

[0.1.0]: https://example.com/0.1.0
"""


def run_script(script: str, *arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / script)] if script.endswith(".py") else [str(SCRIPTS / script)]
    return subprocess.run(
        [*command, *arguments], cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("version", "notes", "error"),
    [
        ("0.2.0", "### Fixed\n\n- A fault.\n", ""),
        ("0.1.0", "- The first.\n", ""),
        ("Unreleased", "", "the heading of Unreleased has no date"),
        ("0.3.0", "", "CHANGELOG.md has no section of 0.3.0"),
    ],
)
def test_the_notes_of_a_release_are_its_section_of_the_changelog(
    version: str, notes: str, error: str, tmp_path: Path
) -> None:
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)

    done = run_script("notes.py", version, cwd=tmp_path)

    assert done.stdout == notes
    assert error in done.stderr
    assert (done.returncode == 0) is (error == "")


def test_one_version_is_stated_everywhere_and_another_tag_is_rejected() -> None:
    version = run_script("version.py").stdout.strip()

    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", version)
    assert run_script("version.py", f"refs/tags/v{version}").stdout.strip() == version
    other = run_script("version.py", "v99.0.0")
    assert (other.returncode, other.stderr.strip()) == (
        1,
        f"pyproject.toml has version {version}, but the tag is 99.0.0",
    )


def test_a_name_is_replaced_in_each_tracked_file_and_a_placeholder_stops_a_release(tmp_path: Path) -> None:
    (tmp_path / ".github").mkdir()
    shutil.copy(ROOT / ".github/identity.env", tmp_path / ".github")
    (tmp_path / "values.yaml").write_text("url: https://github.com/OWNER/REPO/blob/main/x.md\n")
    (tmp_path / "untracked").write_text("OWNER/REPO")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", ".github", "values.yaml"], cwd=tmp_path, check=True)
    values = {
        "REPOSITORY": "acme/gate",
        "IMAGE": "registry.acme.test/gate",
        "CHARTS": "registry.acme.test/charts",
        "SITE": "https://docs.acme.test",
        "SECURITY_CONTACT": "security@acme.test",
        "CONDUCT_CONTACT": "conduct@acme.test",
    }
    before = run_script("identity.py", "--final", cwd=tmp_path)

    assert (
        run_script("identity.py", *(f"{name}={value}" for name, value in values.items()), cwd=tmp_path).returncode == 0
    )

    assert before.returncode == 1
    assert "REPOSITORY=OWNER/REPO" in before.stderr
    assert run_script("identity.py", "--final", cwd=tmp_path).returncode == 0
    assert (tmp_path / "values.yaml").read_text() == "url: https://github.com/acme/gate/blob/main/x.md\n"
    assert (tmp_path / "untracked").read_text() == "OWNER/REPO"
    assert run_script("identity.py", "NAME=x", cwd=tmp_path).returncode == 1


def test_every_placeholder_in_the_tree_is_one_of_the_names() -> None:
    named = dict(line.split("=", 1) for line in run_script("identity.py").stdout.splitlines())
    skipped = ("scripts/release/", "tests/packaging/test_release.py", "docs/release.md", ".github/identity.env")
    found = subprocess.run(
        ["git", "grep", "-nIw", "OWNER"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    strange = []
    for line in found:
        rest = line
        for value in named.values():
            rest = rest.replace(value, "")
        if not line.startswith(skipped) and re.search(r"[/@]OWNER\b|\bOWNER[/.]", rest):  # not a constant in JavaScript
            strange.append(line)
    assert strange == []


def _sdist(file: Path, mtime: int, *, order: int) -> Path:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("p/b.py", "p/a.py")[::order]:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uid, member.uname = len(name), mtime, mtime % 1000, "me"
            archive.addfile(member, io.BytesIO(name.encode()))
    with file.open("wb") as raw, gzip.GzipFile(filename=str(mtime), fileobj=raw, mode="wb", mtime=mtime) as out:
        out.write(packed.getvalue())
    return file


def test_archives_of_the_same_files_become_the_same_bytes(tmp_path: Path) -> None:
    one, other = _sdist(tmp_path / "1", 1_700_000_001, order=1), _sdist(tmp_path / "2", 1_700_000_999, order=-1)
    assert one.read_bytes() != other.read_bytes()

    for file in (one, other):
        done = run_script("normalise_sdist.py", str(file), SOURCE_DATE_EPOCH="1764000000")
        assert done.returncode == 0, done.stderr

    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as archive:
        assert [(member.name, member.mtime, member.uname) for member in archive] == [
            ("p/a.py", 1764000000, ""),
            ("p/b.py", 1764000000, ""),
        ]
        extracted = archive.extractfile("p/a.py")
        assert extracted is not None
        assert extracted.read() == b"p/a.py"


def test_the_packed_chart_has_no_links_and_names_the_published_image(tmp_path: Path) -> None:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed: `make test-tools`")
    named = dict(line.split("=", 1) for line in run_script("identity.py").stdout.splitlines())
    version = run_script("version.py").stdout.strip()

    done = run_script("chart", "package", str(tmp_path))

    assert done.returncode == 0, done.stdout + done.stderr
    index = yaml.safe_load((tmp_path / "index.yaml").read_text())["entries"]["sluicegate"]
    assert [entry["version"] for entry in index] == [version]
    with tarfile.open(tmp_path / f"sluicegate-{version}.tgz") as archive:
        assert [member.name for member in archive if not member.isreg()] == []
        values = archive.extractfile("sluicegate/values.yaml")
        assert values is not None
        assert yaml.safe_load(values)["image"]["repository"] == named["IMAGE"]
    rendered = subprocess.run(
        ["helm", "template", "release", tmp_path / f"sluicegate-{version}.tgz", "--set", "dashboard.enabled=true",
         "--set", "prometheusRule.enabled=true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert rendered.returncode == 0, rendered.stderr
    assert f"image: {named['IMAGE']}:{version}" in rendered.stdout.replace('"', "")


def test_the_image_has_a_tag_for_each_processor_an_inventory_provenance_and_a_signature() -> None:
    built = run_script("image", "build", "arm64", PRINT="1").stdout.splitlines()
    joined = run_script("image", "join", PRINT="1").stdout.splitlines()

    assert len(built) == 2
    for line in built:
        assert "--platform linux/arm64" in line
        assert "--sbom=true --provenance=mode=max" in line
        assert "org.opencontainers.image.version=" in line
    assert [line.split()[0] for line in joined] == ["docker", "cosign", "docker", "cosign"]
    assert "-rules-amd64" in joined[2]


def test_the_digests_of_a_release_are_those_of_its_files_and_of_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(SCRIPTS, tmp_path / "scripts/release")
    named = ("pyproject.toml", "compose.yaml", "README.md", ".github/identity.env", "deploy/helm/sluicegate/Chart.yaml")
    for name in named:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version = run_script("version.py", cwd=tmp_path).stdout.strip()
    (tmp_path / "CHANGELOG.md").write_text(f"## [{version}] - 2026-12-01\n\n- The first.\n")
    files = tmp_path / "dist"
    files.mkdir()
    (files / "a.whl").write_text("a")
    release = [tmp_path / "scripts/release/github-release", f"v{version}", files]

    for _ in range(2):  # a step may be repeated
        done = subprocess.run(release, env=os.environ | {"PRINT": "1"}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

        assert [line.split()[1] for line in (files / "SHA256SUMS").read_text().splitlines()] == ["a.whl"]
        assert f"gh release create v{version}" in done.stdout
        assert str(files / "SHA256SUMS") in done.stdout
        subprocess.run(["sha256sum", "--check", "--status", "SHA256SUMS"], cwd=files, check=True)


def test_the_sbom_lists_the_locked_libraries_without_those_of_development(tmp_path: Path) -> None:
    done = run_script("sbom", str(tmp_path))

    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "sbom.cdx.json").read_text())
    names = {component["name"] for component in found["components"]}
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == ("CycloneDX", "sluicegate")
    assert names >= {"construct", "google-re2", "pyspark", "htm"}
    assert not names & {"pytest", "mypy", "ruff"}
    without = {each["name"] for each in found["components"] if not each.get("licenses")}
    assert without <= {"colorama"}, "only what other systems install may lack a licence"


def _steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_calls_scripts_pins_actions_and_may_only_read_by_default(workflow: Path) -> None:
    text = workflow.read_text()
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    for step in _steps(workflow):
        if "run" in step:
            word = step["run"].split()[0]
            assert word == "make" or os.access(ROOT / word, os.X_OK), step["run"]
            assert "${{" not in step["run"], "an expression in a command is executed as code; use env"
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action}: name the version in a comment"


def test_actionlint_finds_nothing() -> None:
    if shutil.which("actionlint") is None:
        pytest.skip("actionlint is not installed: `make test-tools`")
    done = subprocess.run(["actionlint"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.long
def test_two_builds_of_the_sdist_and_the_wheel_are_equal_and_the_wheel_is_compiled(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"  # without optimization, which takes five times as long
    compiler.write_text('#!/bin/sh\nexec gcc "$@" -O0\n')
    compiler.chmod(0o755)

    done = run_script("reproducible", str(tmp_path), CC=str(compiler))

    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    compiled = {name.partition(".")[0] for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")}
    rooms = [ROOT / room for room in ("protocol", "config", "validation", "dead_letters", "proxy", "pipeline")]
    plain = {file for room in rooms for file in room.rglob("*.pxd") if file.with_suffix(".py").exists()}
    native = {file for room in rooms for file in room.rglob("*.pyx")}
    declared = {f"sluicegate/{file.relative_to(ROOT).with_suffix('')}" for file in plain | native}
    assert len(declared) > 20
    assert declared <= compiled
    assert "The two builds are equal." in done.stdout
    assert done.stdout.count("PASSED") == 4  # twine checks two files, twice
