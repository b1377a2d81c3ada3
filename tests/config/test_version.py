"""A file whose `version` is too new for this sluicegate has only this error, whatever its other contents are."""

import pytest

from sluicegate.config.files.source import Path
from tests.config.reading import SMALLEST, load_text, problems_of_text


@pytest.mark.parametrize("text", ["", "version: 1\n", "version: '1'\n", "version:\n"])
def test_configuration_version_defaults_to_the_current_version(text: str) -> None:
    assert load_text(SMALLEST + text).config.version == 1


@pytest.mark.parametrize("version", ["2", "'2'", "17"])
def test_newer_configuration_version_is_reported_as_a_single_error(version: str) -> None:
    """The keys of a newer file may be unknown, which would hide the reason."""
    (problem,) = problems_of_text(f"{SMALLEST}version: {version}\nnew_key: 5\ntopics: [{{match: a, newer: b}}]\n")

    assert problem == (
        f"c.yaml:3: version: this file has version {version.strip(chr(39))}, but this sluicegate reads version 1: "
        "upgrade all proxies, then change the file"
    )


def test_validates_configuration_version_from_the_environment() -> None:
    (problem,) = problems_of_text(SMALLEST, SLUICEGATE__VERSION="3")

    assert problem.startswith("environment SLUICEGATE__VERSION: version: this file has version 3")


@pytest.mark.parametrize("version", ["0", "-1", "1.5", "new", "[2]", "9" * 5000])
def test_rejects_invalid_configuration_version(version: str) -> None:
    path: Path = ("version",)
    (problem,) = problems_of_text(f"{SMALLEST}version: {version}\n")

    assert f": {path[0]}: expected a version of the format" in problem
    assert len(problem) < 700
