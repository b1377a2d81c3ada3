"""The texts a broker puts into its answers (Kafka 3.9 and 4.x write the same), word for word."""

from collections.abc import Sequence

INVALID_TIMESTAMPS = "One or more records have been rejected due to invalid timestamp"
_FIRST_SHOWN = 3


def timestamp_out_of_range(timestamp: int, offset: int, earliest: int, latest: int) -> str:
    """Times in ms; the offset is the client's."""
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )


def log_append_time_claimed(record: str) -> str:
    """`record` is the broker's own rendering of it."""
    return f"Invalid timestamp type in message {record}. Producer should not set timestamp type to LogAppendTime."


def key_missing(topic: str, partition: int) -> str:
    """A record without a key on a compacted topic."""
    return f"Compacted topic cannot accept message without key in topic partition {topic}-{partition}"


def invalid_records(errors: Sequence[tuple[int, str]]) -> str:
    """The batch's message for record errors other than times, given as (batch index, text)."""
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:_FIRST_SHOWN])
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )


def default_record(offset: int, timestamp: int, key_size: int, value_size: int) -> str:
    """A record of a plain batch as a broker prints it; null sizes show as 0."""
    return (
        f"DefaultRecord(offset={offset}, timestamp={timestamp}, "
        f"key={max(key_size, 0)} bytes, value={max(value_size, 0)} bytes)"
    )


def partial_record(offset: int, timestamp: int, key_size: int, value_size: int) -> str:
    """A record of a compressed batch as a broker prints it; null sizes show as they are on the wire."""
    return (
        f"PartialDefaultRecord(offset={offset}, timestamp={timestamp}, key={key_size} bytes, value={value_size} bytes)"
    )


def decompression_limit(topic: str, partition: int, limit: int) -> str:
    """Ours, not a broker's: a broker has no such limit."""
    return (
        f"The batch for {topic}-{partition} decompresses to more than {limit} bytes, which the proxy in front of "
        f"the cluster does not allow. Send smaller batches, or have limits.max_decompressed_bytes or "
        f"limits.max_decompression_ratio raised."
    )
