"""Reads letters of unknown writers. The configuration describes their headers (`dead_letter_topics`)."""

from collections.abc import Callable
from dataclasses import dataclass

from sluicegate.config.dead_letter_topics import MappedDeadLetters
from sluicegate.dead_letters.header_values import Values, long_text_of, number_in_bytes, number_of, text_of
from sluicegate.dead_letters.letter import Headers, Letter, LetterFormat, StoredRecord
from sluicegate.validation.requests.name_pattern import NamePattern


@dataclass(frozen=True, slots=True)
class MappedFormat:
    """The format of the topics to which a configuration entry applies. `matches` tests the name of a topic."""

    matches: Callable[[str | None], bool]
    entry: MappedDeadLetters
    added: frozenset[bytes]
    prefixes: tuple[bytes, ...]

    @property
    def topic_header(self) -> bytes | None:
        """Return the name of the header with the original topic. None if the entry names one topic for all letters."""
        return None if self.entry.headers.topic is None else self.entry.headers.topic.encode()

    def read(self, record: StoredRecord, values: Values) -> Letter | None:
        """Return the letter, or None if it does not name its original topic."""
        headers = self.entry.headers
        topic = self.entry.from_topic or text_of(values, _named(headers.topic))
        if not topic:
            return None
        number = number_of if self.entry.numbers == "text" else number_in_bytes
        rule = text_of(values, _named(headers.rule))
        return Letter(
            LetterFormat.MAPPED,
            record,
            topic,
            number(values, _named(headers.partition)),
            number(values, _named(headers.offset)),
            record.timestamp if self.entry.keeps_timestamp else number(values, _named(headers.timestamp)),
            self._own(record.headers),
            text_of(values, _named(headers.error)) or "",
            long_text_of(values, _named(headers.message)),
            (rule,) if rule else (),
            text_of(values, _named(headers.stage)),
            number(values, _named(headers.attempts)),
            text_of(values, _named(headers.client)),
        )

    def _own(self, headers: Headers) -> Headers:
        return tuple(each for each in headers if each[0] not in self.added and not each[0].startswith(self.prefixes))


def mapped_format(entry: MappedDeadLetters) -> MappedFormat:
    """Return the format that a configuration entry describes."""
    added = frozenset(name.encode() for name in entry.headers.names)
    return MappedFormat(
        NamePattern(entry.match).matches, entry, added, tuple(prefix.encode() for prefix in entry.prefixes)
    )


def _named(name: str | None) -> bytes | None:
    return None if name is None else name.encode()
