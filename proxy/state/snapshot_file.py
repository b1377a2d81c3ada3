"""Stores the last known state in a file, for a start while the state topic cannot be read."""

import json
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sluicegate.config.disk.deadline import within_deadline
from sluicegate.config.disk.regular_file import read_file
from sluicegate.proxy.state.agreed_state import MAX_SUSPENSIONS, AgreedState
from sluicegate.proxy.state.change import UnreadableChange, text_of, time_of, topic_of, value_in
from sluicegate.proxy.state.settings_table import SettingsTable, TopicValues
from sluicegate.proxy.state.suspension import Suspension, SuspensionScope

_VERSION = 1
_MAX_BYTES = 256 << 20


class SnapshotUnreadable(Exception):
    """There is no usable snapshot. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """The state of the topic with this id, as last read at `read_at_ms` (Unix time, ms)."""

    topic_id: str
    read_at_ms: int
    state: AgreedState


class SnapshotFile:
    """The snapshot file at `path`, for the state topic called `topic`."""

    def __init__(self, path: str, topic: str) -> None:
        self._path = Path(path)
        self._topic = topic

    def read(self) -> StateSnapshot:
        """Return the snapshot. Raises SnapshotUnreadable."""
        try:
            content = json.loads(read_file(self._path, _MAX_BYTES))
            if content["version"] != _VERSION or content["topic"] != self._topic:
                raise ValueError("another version, or of another topic")
            suspensions = content["suspensions"][:MAX_SUSPENSIONS]
            settings = _settings(content.get("topic_settings", {}))
            state = AgreedState(time_of(content, "offset"), tuple(map(_suspension, suspensions)), settings)
            return StateSnapshot(text_of(content, "topic_id"), time_of(content, "read_at_ms"), state)
        except OSError as error:
            raise SnapshotUnreadable(f"{self._path}: {error.strerror}") from None
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError, UnreadableChange) as error:
            raise SnapshotUnreadable(f"{self._path}: {type(error).__name__} {error}") from None

    def write(self, snapshot: StateSnapshot) -> None:
        """Replace the file. Blocks for up to a few seconds. Raises OSError."""
        content = {
            "version": _VERSION,
            "topic": self._topic,
            "topic_id": snapshot.topic_id,
            "read_at_ms": snapshot.read_at_ms,
            "offset": snapshot.state.offset,
            "suspensions": [
                {"topic": each.topic, "reason": each.reason, "until_ms": each.until_ms, "actor": each.actor}
                for each in snapshot.state.suspensions
            ],
            "topic_settings": {
                topic: {"topic_id": its.topic_id, "values": dict(its.values)} for topic, its in snapshot.state.settings
            },
        }
        within_deadline((self._path, "write"), partial(_replace, self._path, json.dumps(content)))


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _suspension(content: Any) -> Suspension:
    topic, reason, actor = topic_of(content), text_of(content, "reason"), text_of(content, "actor")
    return Suspension(topic, reason, time_of(content, "until_ms"), SuspensionScope.CLUSTER, actor)


def _settings(content: Any) -> SettingsTable:
    table = SettingsTable()
    for topic, its in content.items():
        values = {text_of({"key": key}, "key"): value_in(value) for key, value in its["values"].items()}
        name = topic_of({"topic": topic})
        assert name is not None
        table = table.with_topic(name, TopicValues(text_of(its, "topic_id"), values))
    return table
