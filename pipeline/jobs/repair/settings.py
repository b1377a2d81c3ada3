"""Reads the settings of source topics and clean topics that concern a repair."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource

from sluicegate.pipeline.writing.record_writer import ROOM_BYTES

T = TypeVar("T")
SECONDS = 30
CLEAN = "{topic}-clean"
"""Default name of a clean topic; {topic} stands for the polluted topic's name."""
_PAUSE_SECONDS = 0.1
_NOT_KNOWN_YET = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}
)
_OWN = 1  # set for this topic, not a default
_LONG_MAX = str(2**63 - 1)
_NOT_CARRIED = frozenset({"message.timestamp.type"})  # a clean topic keeps the producer's times
# The source accepted the records before, so its limits on times no longer apply.
_UNLIMITED_TIMES = {"message.timestamp.before.max.ms": _LONG_MAX, "message.timestamp.after.max.ms": _LONG_MAX}
_NOTHING_IS_DELETED = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class Retention(StrEnum):
    """The retention of a clean topic: delete nothing, or the same as the source."""

    KEEP = "keep"
    AS_SOURCE = "as-source"


@dataclass(frozen=True, slots=True)
class RepairTopicSettings:
    """A topic's settings. `values` contains all effective settings, and `own` the names of the topic's own settings."""

    values: dict[str, str]
    own: frozenset[str]

    @property
    def largest_message(self) -> int:
        """Return the topic's maximum batch size in bytes."""
        return int(self.values["max.message.bytes"])

    @property
    def retention_ms(self) -> int | None:
        """Return the retention in ms; None if the topic does not delete records by age."""
        age = int(self.values["retention.ms"])
        return age if age >= 0 and "delete" in self.values["cleanup.policy"] else None

    def limit_ms(self, side: str) -> int:
        """Return how far (ms) a time may be `before` or `after` its append."""
        name = f"message.timestamp.{side}.max.ms"
        old = "message.timestamp.difference.max.ms"  # the key of brokers before 3.6
        return int(self.values.get(name, self.values.get(old, _LONG_MAX)))

    @property
    def is_compacted(self) -> bool:
        """Return whether the topic is compacted, so that its records need keys."""
        return "compact" in self.values["cleanup.policy"]

    def for_clean(self, retention: Retention, largest_record: int) -> dict[str, str]:
        """Return the settings of a clean topic for records of up to `largest_record` bytes."""
        carried = {name: self.values[name] for name in self.own - _NOT_CARRIED}
        added = _UNLIMITED_TIMES if retention is Retention.AS_SOURCE else _UNLIMITED_TIMES | _NOTHING_IS_DELETED
        found = carried | {name: value for name, value in added.items() if name in self.values}
        if largest_record + ROOM_BYTES > self.largest_message:
            found["max.message.bytes"] = str(largest_record + ROOM_BYTES)
        return found


def settings_of(admin: AdminClient, topic: str) -> RepairTopicSettings:
    """Return a topic's settings. Raises KafkaException."""

    def ask() -> RepairTopicSettings:
        (future,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
        entries = future.result(SECONDS)
        values = {name: entry.value for name, entry in entries.items() if not entry.is_sensitive}
        return RepairTopicSettings(values, frozenset(n for n in values if entries[n].source == _OWN))

    return retry_until_known(ask)


def topic_id_of(admin: AdminClient, topic: str) -> str:
    """Return the topic's id, which changes when the topic is deleted and created again. Raises KafkaException."""

    def ask() -> str:
        (future,) = admin.describe_topics(TopicCollection([topic])).values()
        return str(future.result(SECONDS).topic_id)

    return retry_until_known(ask)


def retry_until_known(ask: Callable[[], T]) -> T:
    """Retry until the broker knows a new topic and that it leads one of its partitions. Raises KafkaException."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _NOT_KNOWN_YET or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)  # Kafka does not announce a new topic
