"""Topics' settings as far as a repair has to do with them: the source's, and those that its clean topic gets."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource

T = TypeVar("T")
SECONDS = 30
CLEAN = "{topic}-clean"
"""What a clean topic is called where nobody says otherwise; {topic} is the polluted one."""
_PAUSE_SECONDS = 0.1
_NOT_KNOWN_YET = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}
)
_OWN = 1  # set for this topic, not a default
_LONG_MAX = str(2**63 - 1)
_NOT_CARRIED = frozenset({"message.timestamp.type"})  # a clean topic keeps the times that it is given
# Records were appended once: what the source's limits say of their times does not matter any more.
_UNLIMITED_TIMES = {"message.timestamp.before.max.ms": _LONG_MAX, "message.timestamp.after.max.ms": _LONG_MAX}
_NOTHING_IS_DELETED = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
ROOM_BYTES = 1024
"""What a batch of one record takes besides its key, value and own headers."""


class Retention(StrEnum):
    """What a clean topic deletes: nothing, or what its source deletes."""

    KEEP = "keep"
    AS_SOURCE = "as-source"


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """`values`: all that are in force; `own`: the names of those set for the topic itself."""

    values: dict[str, str]
    own: frozenset[str]

    @property
    def largest_message(self) -> int:
        """Bytes of the largest batch that the topic takes."""
        return int(self.values["max.message.bytes"])

    @property
    def retention_ms(self) -> int | None:
        """None where records are not deleted for their age."""
        age = int(self.values["retention.ms"])
        return age if age >= 0 and "delete" in self.values["cleanup.policy"] else None

    @property
    def is_compacted(self) -> bool:
        """Whether records need keys."""
        return "compact" in self.values["cleanup.policy"]

    def for_clean(self, retention: Retention, largest_record: int) -> dict[str, str]:
        """The own settings of a clean topic that takes records of that many bytes."""
        carried = {name: self.values[name] for name in self.own - _NOT_CARRIED}
        added = _UNLIMITED_TIMES if retention is Retention.AS_SOURCE else _UNLIMITED_TIMES | _NOTHING_IS_DELETED
        found = carried | {name: value for name, value in added.items() if name in self.values}
        if largest_record + ROOM_BYTES > self.largest_message:
            found["max.message.bytes"] = str(largest_record + ROOM_BYTES)
        return found


def settings_of(admin: AdminClient, topic: str) -> TopicSettings:
    """Raises KafkaException."""

    def ask() -> TopicSettings:
        (answer,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
        entries = answer.result(SECONDS)
        values = {name: entry.value for name, entry in entries.items() if not entry.is_sensitive}
        return TopicSettings(values, frozenset(n for n in values if entries[n].source == _OWN))

    return until_known(ask)


def topic_id_of(admin: AdminClient, topic: str) -> str:
    """One of the same name that is made anew has another. Raises KafkaException."""

    def ask() -> str:
        (future,) = admin.describe_topics(TopicCollection([topic])).values()
        return str(future.result(SECONDS).topic_id)

    return until_known(ask)


def until_known(ask: Callable[[], T]) -> T:
    """Ask again while a broker has not heard yet of a topic that was made a moment ago, or that it leads a partition of
    it. Raises KafkaException.
    """
    end = time.monotonic() + SECONDS
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _NOT_KNOWN_YET or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)  # nothing announces that all brokers know it
