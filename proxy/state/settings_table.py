"""The topic settings on which a cluster's proxies agree (`sluicegate.*`), as an immutable table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_BUCKETS = 256


@dataclass(frozen=True, slots=True)
class TopicValues:
    """The settings of the topic with this id: values by key."""

    topic_id: str
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of characters in all keys and values."""
        return sum(len(key) + len(value) for key, value in self.values.items())


_NONE: tuple[dict[str, TopicValues], ...] = ({},) * _BUCKETS


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """All topics' settings. `size` is the number of characters in all keys and values.

    A change copies only one bucket of topics, because reading the state topic makes a change for each record.
    """

    size: int = 0
    _buckets: tuple[dict[str, TopicValues], ...] = _NONE

    def of(self, topic: str) -> TopicValues | None:
        """Return a topic's settings, or None if it has none."""
        return self._buckets[hash(topic) % _BUCKETS].get(topic)

    def __iter__(self) -> Iterator[tuple[str, TopicValues]]:
        for bucket in self._buckets:
            yield from bucket.items()

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def with_topic(self, topic: str, values: TopicValues | None) -> "SettingsTable":
        """Return the table with other settings for one topic. None or no values removes the topic."""
        place = hash(topic) % _BUCKETS
        bucket = dict(self._buckets[place])
        before = bucket.pop(topic, None)
        size = self.size - (0 if before is None else before.size)
        if values is not None and values.values:
            bucket[topic] = values
            size += values.size
        return SettingsTable(size, (*self._buckets[:place], bucket, *self._buckets[place + 1 :]))

    def changes_since(self, earlier: "SettingsTable") -> dict[str, TopicValues | None]:
        """Return the settings of each topic that differs from an earlier table.

        None stands for a topic that no longer has settings.
        """
        found: dict[str, TopicValues | None] = {}
        for old, new in zip(earlier._buckets, self._buckets, strict=True):
            if old is not new:
                topics = (topic for topic in old.keys() | new.keys() if old.get(topic) != new.get(topic))
                found |= {topic: new.get(topic) for topic in topics}
        return found


NO_SETTINGS = SettingsTable()
