"""A change of the shared state, with its author, time and operation, and its form as a record in the state topic.

A record's key is the subject of its operation, so that compaction keeps the last operation on each subject. Operations
are absolute (never read, modify, write). So proxies that apply the kept operations in order get the same state.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.reporting.bounded_text import cut, printable

VERSION = 1
MAX_RECORD_BYTES = 160 << 10
_MAX_CHARACTERS = 1000
_MAX_VALUE_CHARACTERS = 12_000
# The last timestamp that is a date (year 9999). A later one cannot be formatted.
_LAST_MS = 253_402_300_799_999


class UnreadableChange(Exception):
    """A record in the state topic is not a change that this version can read. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change.

    `name` is the author's name as known to the proxy. The address is the source of the request.
    """

    name: str
    address: str

    def __str__(self) -> str:
        return f"{self.name} at {self.address}"


@dataclass(frozen=True, slots=True)
class SuspendEnforcement:
    """Suspend enforcement for `topic` until `until_ms` (Unix time, ms). `topic` is None for all topics."""

    topic: str | None
    reason: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class ResumeEnforcement:
    """End the suspension of `topic`, or all suspensions if `topic` is None."""

    topic: str | None


@dataclass(frozen=True, slots=True)
class SetTopicSetting:
    """Set a setting (`sluicegate.*`) of the topic with this id. The settings of an earlier topic with this name end."""

    topic: str
    topic_id: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class DeleteTopicSetting:
    """Delete a setting of the topic with this id."""

    topic: str
    topic_id: str
    key: str


SettingOperation = SetTopicSetting | DeleteTopicSetting
Operation = SuspendEnforcement | ResumeEnforcement | SettingOperation


@dataclass(frozen=True, slots=True)
class StateChange:
    """One operation. `id` is unique. `time_ms` (Unix time, ms) is from the clock of `proxy`, which wrote the change."""

    id: str
    time_ms: int
    actor: Actor
    proxy: str
    operation: Operation


def key_of(operation: Operation) -> bytes:
    """Return an operation's record key. No topic is called `*`."""
    if isinstance(operation, SetTopicSetting | DeleteTopicSetting):
        return f"topic-setting/{operation.topic}/{operation.key}".encode()
    if isinstance(operation, ResumeEnforcement) and operation.topic is None:
        # a separate key, so that a later suspension of all topics does not replace this record
        return b"resumption/*"
    return f"suspension/{operation.topic or '*'}".encode()


def encode(change: StateChange) -> bytes:
    """Return a change's record value, a JSON object."""
    operation = change.operation
    content: dict[str, Any] = {
        "version": VERSION,
        "id": change.id,
        "time_ms": change.time_ms,
        "actor": {"name": change.actor.name, "address": change.actor.address},
        "proxy": change.proxy,
        "topic": operation.topic,
    }
    match operation:
        case SuspendEnforcement():
            content |= {"operation": "suspend", "reason": operation.reason, "until_ms": operation.until_ms}
        case ResumeEnforcement():
            content["operation"] = "resume"
        case SetTopicSetting():
            setting = {"topic_id": operation.topic_id, "key": operation.key, "value": operation.value}
            content |= {"operation": "set_topic_setting", **setting}
        case DeleteTopicSetting():
            content |= {"operation": "delete_topic_setting", "topic_id": operation.topic_id, "key": operation.key}
    return json.dumps(content).encode()


def decode(value: bytes | None) -> StateChange:
    """Return the change in a record value. Raises UnreadableChange."""
    content = content_of(value, MAX_RECORD_BYTES)
    try:
        return StateChange(
            text_of(content, "id"),
            time_of(content, "time_ms"),
            actor_of(content),
            text_of(content, "proxy"),
            _operation(content),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableChange(f"not a change: {type(error).__name__} {cut(printable(str(error)), 100)}") from None


def content_of(value: bytes | None, most_bytes: int) -> Mapping[str, Any]:
    """Return the JSON object in a record value, if it has this version. Raises UnreadableChange."""
    if value is None:
        raise UnreadableChange("no value")
    if len(value) > most_bytes:
        raise UnreadableChange(f"{len(value)} bytes, but only {most_bytes} are allowed")
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        raise UnreadableChange("not JSON") from None
    if not isinstance(content, dict):
        raise UnreadableChange("not a JSON object")
    version = content.get("version")
    if version != VERSION:
        raise UnreadableChange(
            f"version {cut(printable(str(version)), 20)}, but this proxy reads {VERSION}: it may need an upgrade"
        )
    return content


def actor_of(content: Mapping[str, Any]) -> Actor:
    """Return a change's author. Raises KeyError and ValueError."""
    actor = content["actor"]
    if not isinstance(actor, dict):
        raise ValueError("actor")
    return Actor(text_of(actor, "name"), text_of(actor, "address"))


def _operation(content: Mapping[str, Any]) -> Operation:
    topic = topic_of(content)
    match content["operation"]:
        case "set_topic_setting" if topic is not None:
            value = value_in(content["value"])
            return SetTopicSetting(topic, text_of(content, "topic_id"), text_of(content, "key"), value)
        case "delete_topic_setting" if topic is not None:
            return DeleteTopicSetting(topic, text_of(content, "topic_id"), text_of(content, "key"))
        case "suspend":
            return SuspendEnforcement(topic, text_of(content, "reason"), time_of(content, "until_ms"))
        case "resume":
            return ResumeEnforcement(topic)
        case _:
            raise ValueError("operation")


def topic_of(content: Mapping[str, Any]) -> str | None:
    """Return the topic in a part of a change, or None for all topics. Raises KeyError and ValueError."""
    topic = None if content["topic"] is None else text_of(content, "topic")
    if topic is not None and not is_legal_topic_name(topic):
        raise ValueError("topic")
    return topic


def text_of(content: Mapping[str, Any], key: str) -> str:
    """Return a short, printable string. Raises KeyError and ValueError."""
    text = content[key]
    if not isinstance(text, str) or len(text) > _MAX_CHARACTERS:
        raise ValueError(key)
    return printable(text)


def value_in(value: Any) -> str:
    """Return a valid value of a topic setting. Raises ValueError."""
    if not isinstance(value, str) or len(value) > _MAX_VALUE_CHARACTERS:
        raise ValueError("value")
    return value


def time_of(content: Mapping[str, Any], key: str) -> int:
    """Return a time (Unix time, ms) or another number that is not negative. Raises KeyError and ValueError."""
    time_ms = content[key]
    if not isinstance(time_ms, int) or isinstance(time_ms, bool) or not 0 <= time_ms <= _LAST_MS:
        raise ValueError(key)
    return time_ms
