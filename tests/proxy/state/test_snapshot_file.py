"""The file with the last known state is read completely, or not at all."""

import json
import os
from pathlib import Path

import pytest

from sluicegate.proxy.state.agreed_state import AgreedState
from sluicegate.proxy.state.settings_table import NO_SETTINGS, TopicValues
from sluicegate.proxy.state.snapshot_file import SnapshotFile, SnapshotUnreadable, StateSnapshot
from sluicegate.proxy.state.suspension import Suspension, SuspensionScope

SUSPENSION = Suspension(
    "orders", "incident 7", 1_795_784_400_000, SuspensionScope.CLUSTER, "an administrator at 10.1.2.3"
)
SETTINGS = NO_SETTINGS.with_topic("orders", TopicValues("an-id", {"sluicegate.mode": "observe"}))
SNAPSHOT = StateSnapshot("topic-id", 1_795_780_800_000, AgreedState(7, (SUSPENSION,), SETTINGS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def test_snapshot_round_trips_through_its_file(path: Path) -> None:
    file = SnapshotFile(str(path), "gate-state")
    file.write(SNAPSHOT)

    assert file.read() == SNAPSHOT
    assert [each.name for each in path.parent.iterdir()] == ["state.json"]


def test_snapshot_of_another_topic_is_rejected(path: Path) -> None:
    SnapshotFile(str(path), "gate-state").write(SNAPSHOT)

    with pytest.raises(SnapshotUnreadable, match="of another topic"):
        SnapshotFile(str(path), "other-state").read()


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 10_000, '{"version": 1, "topic": "gate-state"}'])
def test_malformed_snapshot_file_is_rejected(path: Path, content: str) -> None:
    path.write_text(content)

    with pytest.raises(SnapshotUnreadable):
        SnapshotFile(str(path), "gate-state").read()


def test_snapshot_with_invalid_suspension_is_rejected(path: Path) -> None:
    file = SnapshotFile(str(path), "gate-state")
    file.write(SNAPSHOT)
    content = json.loads(path.read_text())
    content["suspensions"][0]["until_ms"] = "for ever"
    path.write_text(json.dumps(content))

    with pytest.raises(SnapshotUnreadable, match="until_ms"):
        file.read()


@pytest.mark.parametrize("wrong", ["", ["orders"], {"values": {}}, {"topic_id": "i", "values": {"sluicegate.mode": 7}}])
def test_snapshot_with_invalid_topic_setting_is_rejected(path: Path, wrong: object) -> None:
    file = SnapshotFile(str(path), "gate-state")
    file.write(SNAPSHOT)
    content = json.loads(path.read_text())
    content["topic_settings"] = {"orders": wrong}
    path.write_text(json.dumps(content))

    with pytest.raises(SnapshotUnreadable):
        file.read()


def test_missing_snapshot_file_and_fifo_are_rejected_without_waiting(path: Path) -> None:
    file = SnapshotFile(str(path), "gate-state")
    with pytest.raises(SnapshotUnreadable, match="No such file"):
        file.read()

    os.mkfifo(path)
    with pytest.raises(SnapshotUnreadable, match="expected a regular file"):
        file.read()
