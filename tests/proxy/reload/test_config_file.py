"""Tests the configuration's files while the proxy runs: which changes are noticed, and which keys wait for the next
start."""

from pathlib import Path

import pytest

from sluicegate.config.loading import ConfigError
from sluicegate.proxy.reload.config_file import ConfigFile, keys_needing_restart
from tests.config.reading import SMALLEST, load_text


@pytest.fixture
def main(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    path = tmp_path / "c.yaml"
    path.write_text(SMALLEST + "topic_files: policies/*.yaml\n")
    return path


@pytest.fixture
def file(main: Path) -> ConfigFile:
    given = ConfigFile(main, ())
    given.read()
    assert look_twice(given) is False
    return given


def look_twice(file: ConfigFile) -> bool:
    """Check twice, because a change counts once it is stable; return whether there was one."""
    assert file.has_changed() is False  # the file may still be being written
    return file.has_changed()


def test_changed_content_is_detected_once_it_is_stable(file: ConfigFile, main: Path) -> None:
    main.write_text(SMALLEST)

    assert [file.has_changed() for _ in range(2)] == [False, True]
    file.read()
    assert [file.has_changed() for _ in range(3)] == [False, False, False]


def test_rewriting_same_content_is_not_detected_as_change(file: ConfigFile, main: Path) -> None:
    other = main.with_name("other")
    other.write_text(main.read_text())
    other.replace(main)

    assert look_twice(file) is False


def test_added_changed_or_removed_topic_file_is_detected(file: ConfigFile, main: Path) -> None:
    team = main.parent / "policies" / "team.yaml"
    for step in (
        lambda: team.write_text("topics: [{match: a}]"),
        lambda: team.write_text("topics: [{match: bb}]"),
        team.unlink,
    ):
        step()
        assert look_twice(file) is True
        file.read()


def test_redirected_symlink_of_folder_is_detected_as_change(tmp_path: Path) -> None:
    for name, mode in (("..1", "reject"), ("..2", "observe")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "team.yaml").write_text(f"topics: [{{match: a, mode: {mode}}}]")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "team.yaml").symlink_to("..data/team.yaml")
    main = tmp_path / "c.yml"
    main.write_text(SMALLEST + "topic_files: '*.yaml'\n")
    file = ConfigFile(main, ())
    assert len(file.read().config.topics) == 1
    assert look_twice(file) is False

    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")

    assert look_twice(file) is True
    assert file.read().config.topics[0].mode == "observe"


def test_file_removed_right_after_first_inclusion_is_detected_as_change(file: ConfigFile, main: Path) -> None:
    (main.parent / "more").mkdir()
    more = main.parent / "more" / "team.yaml"
    more.write_text("topics: [{match: a}]")
    main.write_text(SMALLEST + "topic_files: more/*.yaml\n")
    assert look_twice(file) is True
    loaded = file.read()

    more.unlink()
    assert look_twice(file) is True
    assert list(file.read(loaded.source).source.missing) == [more]


def test_missing_configuration_file_is_not_detected_as_change(file: ConfigFile, main: Path) -> None:
    text = main.read_text()
    main.unlink()
    assert look_twice(file) is False

    main.write_text(text + "drain_timeout_seconds: 3\n")
    assert look_twice(file) is True


def test_an_invalid_file_is_reported_once_and_its_topic_files_are_still_watched(file: ConfigFile, main: Path) -> None:
    main.write_text("upstream: [")
    assert look_twice(file) is True
    with pytest.raises(ConfigError):
        file.read()
    assert [file.has_changed() for _ in range(2)] == [False, False]

    (main.parent / "policies" / "team.yaml").write_text("topics: [{match: a}]")
    assert look_twice(file) is True


def test_keys_needing_restart_are_reported_without_values() -> None:
    before = load_text(SMALLEST + "topics: [{match: a}]").config
    after = load_text(
        SMALLEST + "topics: [{match: b}]\ndefaults: {mode: observe}\nlimits: {max_in_flight: 7}\nadmin: {listen: 'h:1'}"
    ).config

    assert keys_needing_restart(before, after) == ["admin.listen", "limits.max_in_flight"]
