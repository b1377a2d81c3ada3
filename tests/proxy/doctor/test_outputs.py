"""The doctor reports outputs without which `run` does not start."""

import sys
from pathlib import Path

import pytest

from sluicegate.proxy.doctor.check_result import Level
from sluicegate.proxy.doctor.outputs import check
from tests.config.reading import SMALLEST, load_text


def output_results(text: str) -> dict[str, tuple[Level, str, str]]:
    return {each.about: (each.level, each.found, each.advice) for each in check(load_text(SMALLEST + text).config)}


def test_a_file_that_exists_or_can_be_created_is_writable_and_not_touched(tmp_path: Path) -> None:
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    old.write_text("line\n")

    levels = [output_results(f"violations: {{file: '{file}'}}")["violations.file"][0] for file in (new, old)]

    assert levels == [Level.OK, Level.OK]
    assert not new.exists()
    assert old.read_text() == "line\n"


def test_a_folder_in_place_of_the_file_is_a_failure(tmp_path: Path) -> None:
    level, message, advice = output_results(f"violations: {{file: '{tmp_path}'}}")["violations.file"]

    assert (level, message) == (Level.FAILURE, f"{tmp_path} cannot be written: Is a directory")
    assert advice


def test_a_missing_package_is_a_failure_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    seen = output_results("violations: {topic: bad}\ntopics: [{match: a, quarantine: dead}]")

    for key in ("violations.topic", "quarantine"):
        assert seen[key][:2] == (Level.FAILURE, f"{key} needs the package confluent-kafka")
        assert seen[key][2].startswith("pip install 'sluicegate[topic]'")
