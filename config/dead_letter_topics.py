"""The section `dead_letter_topics`: topics with dead letters of unknown writers, and the meaning of their headers."""

from typing import Literal

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import Flag, Names, Text, TopicName, TopicPattern


@section
class LetterHeaders:
    """The names of the headers that the writer of the letters adds. Further headers are the record's own."""

    topic: Text | None = described("The name of the original topic.", default=None)
    partition: Text | None = described("The original partition.", default=None)
    offset: Text | None = described("The original offset.", default=None)
    timestamp: Text | None = described(
        "The original timestamp, in milliseconds since 1970. Default: that of the letter, with `keeps_timestamp`.",
        default=None,
    )
    error: Text | None = described("The class of the exception, or a code.", default=None)
    message: Text | None = described(
        "The message of the exception.", default=None, misnomers={"text": "message: {value}"}
    )
    stage: Text | None = described("The step that failed.", default=None)
    rule: Text | None = described("The name of the violated rule.", default=None)
    attempts: Text | None = described("The number of attempts.", default=None)
    client: Text | None = described("The client, consumer group or connector that failed.", default=None)

    @property
    def names(self) -> list[str]:
        """Return all names that are given."""
        every = (self.topic, self.partition, self.offset, self.timestamp, self.error)
        others = (self.message, self.stage, self.rule, self.attempts, self.client)
        return [name for name in (*every, *others) if name is not None]


@section
class MappedDeadLetters:
    """Topics of dead letters of one writer. A letter of a known writer needs no entry."""

    match: TopicPattern = described(
        "A pattern of the names of topics of dead letters, as in `topics[].match`.",
        misnomers=dict.fromkeys(("name", "topic", "pattern", "topics"), "match: {value}"),
    )
    headers: LetterHeaders = described("The headers of each letter.", default=LetterHeaders())
    from_topic: TopicName | None = described(
        "The original topic of all letters, instead of `headers.topic`. Each record without the headers of a known "
        "writer is then a letter.",
        default=None,
    )
    prefixes: Names = described(
        "The beginnings of the names of further headers that the writer adds, for example `x-error-`.", default=()
    )
    numbers: Literal["text", "big_endian"] = described(
        "The encoding of numbers in headers: decimal text, or 1 to 8 bytes as Java's ByteBuffer writes them.",
        default="text",
    )
    keeps_timestamp: Flag = described(
        "Whether the letter has the timestamp of the original record. Default: the original timestamp is unknown "
        "without `headers.timestamp`.",
        default=False,
    )

    def __post_init__(self) -> None:
        if (self.headers.topic is None) == (self.from_topic is None):
            raise ValueError("set exactly one of headers.topic and from_topic, the original topic of the letters")
        if self.keeps_timestamp and self.headers.timestamp is not None:
            raise ValueError("keeps_timestamp and headers.timestamp cannot be combined")
        twice = {name for name in self.headers.names if self.headers.names.count(name) > 1}
        if twice:
            raise ValueError(f"headers: two fields have the header {min(twice)}")
