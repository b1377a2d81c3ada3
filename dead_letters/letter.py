"""Represents a dead letter of any format: the stored record, its origin, and the error that the writer reported."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

Headers = tuple[tuple[bytes, bytes | None], ...]


class LetterFormat(StrEnum):
    """A writer of dead letters with known headers."""

    SLUICEGATE = "sluicegate"
    CONNECT = "connect"
    SPRING = "spring"
    STREAMS = "streams"
    SHARE_GROUP = "share-group"
    CONFLUENT_RULE = "confluent-rule"
    MAPPED = "mapped"


class StoredRecord(NamedTuple):
    """A record in a dead-letter topic. `timestamp` is in ms. A null key, value or header value is None."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """Return the size of the key and the value together (bytes)."""
        return len(self.key or b"") + len(self.value or b"")

    @property
    def place(self) -> str:
        """Return the record's topic, partition and offset, for messages."""
        return f"{self.topic}-{self.partition} offset {self.offset}"


class Obstacle(StrEnum):
    """The reasons why a letter does not contain the original record and therefore cannot be redriven."""

    text: str

    def __new__(cls, code: str, text: str) -> "Obstacle":
        """Create a member whose value is `code`."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.text = text
        return member

    COPY = "copy_of_stored_record", "the record is in its topic already (quarantine with mode: observe)"
    NOT_COPIED = "record_not_copied", "the broker wrote only the place of the record, without its key and value"
    NOT_ORIGINAL = "written_as_json", "the rule failed before the value was serialized, so the letter has JSON instead"


class Letter(NamedTuple):
    """A dead letter.

    - `topic`, `partition`, `offset`, `timestamp`: those of the original record; None if the format lacks them.
    - `headers`: the original record's own headers.
    - `error`: the class of the exception, or the code of the violation. `text` is the exception's message. Both are
      truncated, because a client may choose them.
    - `rules`: the violated rules. `stage` is the writer's name for the step that failed.
    - `attempts`: the number of deliveries, if the format counts them.
    - `client`: the producer in sluicegate's own format; otherwise the connector, the consumer group or the subject.
    - `obstacle`: why the letter does not contain the original record; None if it does.
    """

    format: LetterFormat
    record: StoredRecord
    topic: str
    partition: int | None
    offset: int | None
    timestamp: int | None
    headers: Headers
    error: str
    text: str = ""
    rules: tuple[str, ...] = ()
    stage: str | None = None
    attempts: int | None = None
    client: str | None = None
    obstacle: Obstacle | None = None


ReadLetter = Callable[[StoredRecord], Letter | None]
"""Returns the letter in a record, or None if the record is not a dead letter."""
