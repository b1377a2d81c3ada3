"""Reads the letters of Spring Kafka's DeadLetterPublishingRecoverer, with numbers in big-endian bytes.

With its default settings each further failure appends headers of the same names; the last ones are of the last failure.
Source: KafkaHeaders and DeadLetterPublishingRecoverer of Spring Kafka.
"""

from sluicegate.dead_letters.header_values import Values, big_endian_of, long_text_of, text_of
from sluicegate.dead_letters.letter import Letter, LetterFormat, StoredRecord

_PREFIX = b"kafka_dlt-"
TOPIC = b"kafka_dlt-original-topic"
_ATTEMPTS = b"retry_topic-attempts"
_DELIVERY = b"kafka_deliveryAttempt"
_OTHERS = frozenset(
    {
        _ATTEMPTS,
        b"retry_topic-backoff-timestamp",
        b"retry_topic-original-timestamp",
        _DELIVERY,
        b"kafka_listenerInfo",
        b"springDeserializerExceptionKey",
        b"springDeserializerExceptionValue",
    }
)
"""Headers of retry topics, and those that a listener's container adds to the record before the listener fails."""
_INT, _LONG = 4, 8


def is_added(name: bytes) -> bool:
    """Return whether Spring Kafka has added a header of this name."""
    return name.startswith(_PREFIX) or name in _OTHERS


def read(record: StoredRecord, values: Values) -> Letter | None:
    """Return the letter; None without the name of a topic."""
    topic = text_of(values, TOPIC)
    if not topic:
        return None
    thrown = text_of(values, b"kafka_dlt-exception-fqcn") or text_of(values, b"kafka_dlt-key-exception-fqcn")
    cause = text_of(values, b"kafka_dlt-exception-cause-fqcn")
    text = long_text_of(values, b"kafka_dlt-exception-message")
    return Letter(
        LetterFormat.SPRING,
        record,
        topic,
        big_endian_of(values, b"kafka_dlt-original-partition", _INT),
        big_endian_of(values, b"kafka_dlt-original-offset", _LONG),
        big_endian_of(values, b"kafka_dlt-original-timestamp", _LONG),
        tuple(each for each in record.headers if not is_added(each[0])),
        cause or thrown or "",
        text or long_text_of(values, b"kafka_dlt-key-exception-message"),
        attempts=_attempts(values),
        client=text_of(values, b"kafka_dlt-original-consumer-group"),
    )


def _attempts(values: Values) -> int | None:
    """Return the number of attempts: of retry topics, in as few bytes as it needs, or else of the last container.

    A container with `deliveryAttemptHeader` adds one header with each attempt.
    """
    value = values.get(_ATTEMPTS) or values.get(_DELIVERY)
    return None if not value or len(value) > _LONG else int.from_bytes(value, "big", signed=True)
