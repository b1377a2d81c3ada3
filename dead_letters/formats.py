"""Detects the format of a dead letter from its headers, and reads the letter."""

from collections.abc import Callable, Sequence

from sluicegate.dead_letters import own_format
from sluicegate.dead_letters.header_values import Values
from sluicegate.dead_letters.letter import Letter, StoredRecord
from sluicegate.dead_letters.mapped_format import MappedFormat
from sluicegate.dead_letters.spring_format import SPRING, SPRING_RETRY_TOPIC
from sluicegate.dead_letters.text_formats import CONFLUENT_RULE, CONNECT, SHARE_GROUP, STREAMS

_MOST_TOPICS = 10_000
_Read = Callable[[StoredRecord, Values], Letter | None]
_READERS: dict[bytes, _Read] = {
    own_format.TOPIC: own_format.read,
    **{each.topic: each.read for each in (CONNECT, STREAMS, SHARE_GROUP, CONFLUENT_RULE, SPRING, SPRING_RETRY_TOPIC)},
}
"""Readers by the name of the header that contains the original topic. Each format has such a header."""


class LetterReader:
    """A reader for the formats of all known writers and of the topics in `mapped`. The first matching entry applies."""

    def __init__(self, mapped: Sequence[MappedFormat] = ()) -> None:
        self._mapped = mapped
        self._topics: dict[str, MappedFormat | None] = {}

    def read(self, record: StoredRecord) -> Letter | None:
        """Return the letter, or None if the record is not a dead letter.

        A record that failed several times has headers from several writers. The last ones in the record apply.
        """
        mapped = self._mapped_format(record.topic) if self._mapped else None
        topic_header = None if mapped is None else mapped.topic_header
        values = dict(record.headers)
        for name, _ in reversed(record.headers):
            read = mapped.read if mapped is not None and name == topic_header else _READERS.get(name)
            if read is not None:
                return read(record, values)
        return mapped.read(record, values) if mapped is not None and topic_header is None else None

    def _mapped_format(self, topic: str) -> MappedFormat | None:
        if topic not in self._topics:
            if len(self._topics) >= _MOST_TOPICS:
                self._topics.clear()
            self._topics[topic] = next((each for each in self._mapped if each.matches(topic)), None)
        return self._topics[topic]


read_letter = LetterReader().read
"""Reads a letter in the format of a known writer. Returns None if the record is not a dead letter."""
