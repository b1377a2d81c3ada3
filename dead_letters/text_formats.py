"""Reads formats with text headers: Kafka Connect, Kafka Streams, share groups, and Confluent's data quality rules.

Sources: Connect's DeadLetterQueueReporter (KIP-298), Streams' ExceptionHandlerUtils (KIP-1034), the broker's
ShareGroupDLQStateManager (KIP-1191), and DlqAction in Confluent's clients.
"""

from dataclasses import dataclass

from sluicegate.dead_letters.header_values import Values, long_text_of, number_of, text_of
from sluicegate.dead_letters.letter import Letter, LetterFormat, Obstacle, StoredRecord

_READ = "READ"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The header names of one format. `topic` identifies the format. A name is None if the format lacks the header.

    All names begin with `prefix`. `keeps_time` is whether the letter has the original record's timestamp.
    """

    format: LetterFormat
    prefix: bytes
    topic: bytes
    partition: bytes | None = None
    offset: bytes | None = None
    timestamp: bytes | None = None
    error: bytes | None = None
    text: bytes | None = None
    stage: bytes | None = None
    attempts: bytes | None = None
    client: bytes | None = None
    rule: bytes | None = None
    keeps_time: bool = False

    def read(self, record: StoredRecord, values: Values) -> Letter | None:
        """Return the letter, or None if it does not name its original topic."""
        topic = text_of(values, self.topic)
        if not topic:
            return None
        rule = text_of(values, self.rule)
        return Letter(
            self.format,
            record,
            topic,
            number_of(values, self.partition),
            number_of(values, self.offset),
            record.timestamp if self.keeps_time else number_of(values, self.timestamp),
            tuple([each for each in record.headers if not each[0].startswith(self.prefix)]),
            text_of(values, self.error) or "",
            long_text_of(values, self.text),
            (rule,) if rule else (),
            text_of(values, self.stage),
            number_of(values, self.attempts),
            text_of(values, self.client),
            self._obstacle(record, values),
        )

    def _obstacle(self, record: StoredRecord, values: Values) -> Obstacle | None:
        if self.format is LetterFormat.SHARE_GROUP and record.key is None and record.value is None:
            return Obstacle.NOT_COPIED
        if self.format is LetterFormat.CONFLUENT_RULE and text_of(values, self.stage) != _READ:
            return Obstacle.NOT_ORIGINAL
        return None


CONNECT = TextFormat(
    LetterFormat.CONNECT,
    b"__connect.errors.",
    b"__connect.errors.topic",
    b"__connect.errors.partition",
    b"__connect.errors.offset",
    error=b"__connect.errors.exception.class.name",
    text=b"__connect.errors.exception.message",
    stage=b"__connect.errors.stage",
    client=b"__connect.errors.connector.name",
    keeps_time=True,
)
STREAMS = TextFormat(
    LetterFormat.STREAMS,
    b"__streams.errors.",
    b"__streams.errors.topic",
    b"__streams.errors.partition",
    b"__streams.errors.offset",
    error=b"__streams.errors.exception",
    text=b"__streams.errors.message",
    keeps_time=True,
)
SHARE_GROUP = TextFormat(
    LetterFormat.SHARE_GROUP,
    b"__dlq.errors.",
    b"__dlq.errors.topic",
    b"__dlq.errors.partition",
    b"__dlq.errors.offset",
    text=b"__dlq.errors.message",
    attempts=b"__dlq.errors.delivery.count",
    client=b"__dlq.errors.group",
)
CONFLUENT_RULE = TextFormat(
    LetterFormat.CONFLUENT_RULE,
    b"__rule.",
    b"__rule.topic",
    text=b"__rule.exception",
    stage=b"__rule.mode",
    client=b"__rule.subject",
    rule=b"__rule.name",
)
