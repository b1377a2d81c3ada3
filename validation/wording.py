"""Builds the messages in a broker's responses, word for word (the same in Kafka 3.9 and 4.x), and the proxy's own."""

from collections.abc import Sequence

from sluicegate.protocol.records.codecs.decompression_budget import OverLimit, PayloadLimit
from sluicegate.validation.units import diagnose

INVALID_TIMESTAMPS = "One or more records have been rejected due to invalid timestamp"
FIRST_SHOWN = 3


def timestamp_out_of_range(timestamp: int, offset: int, earliest: int, latest: int) -> str:
    """Return the message for a timestamp outside the bounds. Times are in ms, and the offset is the client's."""
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )


def with_diagnosis(text: str, timestamp: int, now_ms: int) -> str:
    """Return a broker's message about a timestamp (ms), followed by the proxy's diagnosis."""
    return f"{text}; {diagnose(timestamp, now_ms)}"


def log_append_time_claimed(record: str) -> str:
    """Return the message for a record that claims LogAppendTime. `record` is the broker's rendering of it."""
    return f"Invalid timestamp type in message {record}. Producer should not set timestamp type to LogAppendTime."


def key_missing(topic: str, partition: int) -> str:
    """Return the message for a record without a key on a compacted topic."""
    return f"Compacted topic cannot accept message without key in topic partition {topic}-{partition}"


def invalid_records(errors: Sequence[tuple[int, str]], total: int) -> str:
    """Return the batch's message for `total` record errors, except those about timestamps.

    `errors` contains pairs of batch index and message.
    """
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:FIRST_SHOWN])
    return (
        f"One or more records have been rejected due to {total} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )


def default_record(offset: int, timestamp: int, key_size: int, value_size: int) -> str:
    """Return a record in an uncompressed batch as a broker prints it. Null sizes are printed as 0."""
    return (
        f"DefaultRecord(offset={offset}, timestamp={timestamp}, "
        f"key={max(key_size, 0)} bytes, value={max(value_size, 0)} bytes)"
    )


def partial_record(offset: int, timestamp: int, key_size: int, value_size: int) -> str:
    """Return a record in a compressed batch as a broker prints it. Null sizes are printed as on the wire."""
    return (
        f"PartialDefaultRecord(offset={offset}, timestamp={timestamp}, key={key_size} bytes, value={value_size} bytes)"
    )


def legacy_batch(offset: int, record: str) -> str:
    """Return a message of magic 0 or 1 with its offset. `record` is the broker's rendering of its content."""
    return f"LegacyRecordBatch(offset={offset}, {record})"


def inner_magic(batch: str, outer_magic: int, topic: str, partition: int) -> str:
    """Return the message for a message in a wrapper of another magic. `batch` is the broker's rendering of it."""
    return f"Record {batch}'s magic does not match outer magic {outer_magic} in topic partition {topic}-{partition}"


def broken_rule(rule: str, fault: str) -> str:
    """Return the proxy's message for a violation of an operator's rule."""
    return f"rule {rule}: {fault}"


def outage(rule: str, reason: str, is_final: bool) -> str:
    """Return the proxy's message for a rule's dependency that does not respond."""
    advice = "send again when it is available" if is_final else "try again"
    return f"rule {rule} cannot be evaluated by the proxy in front of the cluster: {reason}; {advice}"


def schema_error(rule: str, reason: str) -> str:
    """Return the proxy's message for a schema that exists, but cannot be compiled or applied."""
    return f"rule {rule} cannot be applied by the proxy in front of the cluster: {reason}"


_ADVICE = {
    PayloadLimit.REQUEST: (
        "The batches of this request up to that for {place} decompress to more than {size} bytes together, which the "
        "proxy in front of the cluster does not allow. Send smaller requests, or have {key} raised."
    ),
    PayloadLimit.RATIO: (
        "The batch for {place} decompresses to more than {size} bytes, too many for its compressed size, which the "
        "proxy in front of the cluster does not allow. Send smaller batches, or have {key} raised."
    ),
    PayloadLimit.WINDOW: (
        "The batch for {place} decompresses to more than {size} bytes in one block or window, which the proxy in front "
        "of the cluster does not allow. Send smaller batches, compress with a smaller window, or have {key} raised."
    ),
    PayloadLimit.HEADERS: (
        "The records of this request up to those for {place} have more than {size} headers together, which the proxy "
        "in front of the cluster does not allow. Send smaller requests or fewer headers, or have {key} raised."
    ),
}


def over_limit(topic: str, partition: int, over: OverLimit) -> str:
    """Return the proxy's message for an exceeded limit that brokers do not have."""
    return _ADVICE[over.bound].format(place=f"{topic}-{partition}", size=over.size, key=over.bound.value)
