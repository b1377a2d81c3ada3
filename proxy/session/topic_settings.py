"""Describes how a session reads and changes policies that are topic settings of the cluster (`sluicegate.*`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sluicegate.config.setting_keys import SettingKey
from sluicegate.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class SettingRefusal:
    """Why settings are not accepted: the error and the message for the client."""

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A change of a topic's settings, with absolute values: `values` are set, and those in `removed` are deleted.

    `topic_id` is the id in the broker's response. If it is None, the response contains no id, and the id is looked up.
    If `is_deleted` is true, the topic is gone, and so are all its settings.
    """

    topic: str
    topic_id: bytes | None
    values: Mapping[str, str]
    removed: frozenset[str] = frozenset()
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class StoreFailure:
    """Why a topic's settings were not stored. If `is_temporary` is true, the same change may be stored later."""

    reason: str
    is_temporary: bool = True


@dataclass(frozen=True, slots=True)
class Requester:
    """The client that requested a change: its principal or client id, and its address."""

    name: str
    address: str


Failures = Mapping[str, StoreFailure]
"""A change's failures, by topic."""


class TopicSettings(Protocol):
    """The cluster's topic settings that sluicegate keeps."""

    @property
    def are_known(self) -> bool:
        """Whether this proxy has read the settings since its start."""

    def await_known(self, report: Callable[[], None]) -> None:
        """Call `report` on the event loop when the settings are known, or when this takes too long."""

    def settings_of(self, topic: str) -> Mapping[str, str]:
        """Return a topic's settings by their names with the prefix; an empty mapping if it has none."""

    def keys_of(self, topic: str) -> Sequence[SettingKey]:
        """Return the keys that a topic's owners may set."""

    def refusal(self, topic: str, values: Mapping[str, str]) -> SettingRefusal | None:
        """Return why a topic cannot have exactly these settings, or None if it can. Blocks: call it in a thread."""

    def commit(
        self, changes: Sequence[SettingsChange], requester: Requester, report: Callable[[Failures], None]
    ) -> None:
        """Store changes, and put them in force in all workers of this proxy, without blocking.

        `report` is called once, on the event loop, with the failure of each topic whose change failed.
        """
