"""Reads letters of Spring Kafka's DeadLetterPublishingRecoverer, which encodes numbers as big-endian bytes.

By default, each further failure appends headers with the same names, so the last ones describe the last failure. Retry
topics (`@RetryableTopic`) use other names for most headers. Source: KafkaHeaders, RetryTopicHeaders and
DeadLetterPublishingRecoverer in Spring Kafka.
"""

from dataclasses import dataclass

from sluicegate.dead_letters.header_values import Values, big_endian_of, long_text_of, number_in_bytes, text_of
from sluicegate.dead_letters.letter import Letter, LetterFormat, StoredRecord

_PREFIXES = (b"kafka_dlt-", b"kafka_original-", b"kafka_exception-", b"kafka_key-exception-")
_RETRY, _DELIVERY = b"retry_topic-attempts", b"kafka_deliveryAttempt"
_OTHERS = frozenset(
    {
        _RETRY,
        b"retry_topic-backoff-timestamp",
        b"retry_topic-original-timestamp",
        _DELIVERY,
        b"kafka_listenerInfo",
        b"springDeserializerExceptionKey",
        b"springDeserializerExceptionValue",
    }
)
"""Headers of retry topics, and headers that a listener container adds to the record before the listener fails."""
_INT, _LONG = 4, 8


def is_added(name: bytes) -> bool:
    """Return whether Spring Kafka added the header with this name."""
    return name.startswith(_PREFIXES) or name in _OTHERS


@dataclass(frozen=True, slots=True)
class SpringFormat:
    """The format with one prefix of header names: `kafka_dlt-`, or `kafka_` in retry topics."""

    prefix: bytes

    @property
    def topic(self) -> bytes:
        """Return the name of the header that identifies the format."""
        return self.prefix + b"original-topic"

    def read(self, record: StoredRecord, values: Values) -> Letter | None:
        """Return the letter, or None if it does not name its original topic."""
        topic = text_of(values, self.topic)
        if not topic:
            return None
        prefix = self.prefix
        thrown = text_of(values, prefix + b"exception-fqcn") or text_of(values, prefix + b"key-exception-fqcn")
        cause = text_of(values, prefix + b"exception-cause-fqcn")
        text = long_text_of(values, prefix + b"exception-message")
        return Letter(
            LetterFormat.SPRING,
            record,
            topic,
            big_endian_of(values, prefix + b"original-partition", _INT),
            big_endian_of(values, prefix + b"original-offset", _LONG),
            big_endian_of(values, prefix + b"original-timestamp", _LONG),
            tuple(each for each in record.headers if not is_added(each[0])),
            cause or thrown or "",
            text or long_text_of(values, prefix + b"key-exception-message"),
            attempts=_attempts(values),
            client=text_of(values, b"kafka_dlt-original-consumer-group"),
        )


SPRING = SpringFormat(b"kafka_dlt-")
SPRING_RETRY_TOPIC = SpringFormat(b"kafka_")


def _attempts(values: Values) -> int | None:
    """Return the number of failed attempts.

    In retry topics, the header contains the number of the next attempt. A container with `deliveryAttemptHeader` adds
    one header per attempt.
    """
    following = number_in_bytes(values, _RETRY)
    return number_in_bytes(values, _DELIVERY) if following is None else following - 1
