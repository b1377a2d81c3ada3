"""The texts a broker puts into its answers (Kafka 3.9 and 4.x write the same), word for word."""

from collections.abc import Sequence

from sluicegate.protocol.records.codecs.decompression_budget import Bound, OverLimit
from sluicegate.validation.units import diagnose

INVALID_TIMESTAMPS = "One or more records have been rejected due to invalid timestamp"
FIRST_SHOWN = 3


def timestamp_out_of_range(timestamp: int, offset: int, earliest: int, latest: int) -> str:
    """Times in ms; the offset is the client's."""
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )


def diagnosed(said: str, timestamp: int, now_ms: int) -> str:
    """Ours: behind what a broker has said of a time (ms), what that was probably meant to be."""
    return f"{said}; {diagnose(timestamp, now_ms)}"


def log_append_time_claimed(record: str) -> str:
    """`record` is the broker's own rendering of it."""
    return f"Invalid timestamp type in message {record}. Producer should not set timestamp type to LogAppendTime."


def key_missing(topic: str, partition: int) -> str:
    """A record without a key on a compacted topic."""
    return f"Compacted topic cannot accept message without key in topic partition {topic}-{partition}"


def invalid_records(errors: Sequence[tuple[int, str]], total: int) -> str:
    """The batch's message for `total` record errors other than times, the first given as (batch index, text)."""
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:FIRST_SHOWN])
    return (
        f"One or more records have been rejected due to {total} record errors in total, "
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


def legacy_batch(offset: int, record: str) -> str:
    """A message of magic 0 or 1 with its offset; `record` is the broker's rendering of what is in it."""
    return f"LegacyRecordBatch(offset={offset}, {record})"


def inner_magic(batch: str, outer_magic: int, topic: str, partition: int) -> str:
    """A message within a wrapper of another magic; `batch` is the broker's own rendering of it."""
    return f"Record {batch}'s magic does not match outer magic {outer_magic} in topic partition {topic}-{partition}"


def broken_rule(rule: str, words: str) -> str:
    """Ours, not a broker's: a rule of the operator's, and what is wrong by it."""
    return f"rule {rule}: {words}"


def outage(rule: str, words: str, is_final: bool) -> str:
    """Ours: what a rule depends on does not answer, so nobody can say whether the records are good."""
    advice = "send again when it does" if is_final else "try again"
    return f"rule {rule} cannot be asked by the proxy in front of the cluster: {words}; {advice}"


def schema_error(rule: str, words: str) -> str:
    """Ours: a schema that exists cannot be compiled or applied by the proxy."""
    return f"rule {rule} cannot be applied by the proxy in front of the cluster: {words}"


_ADVICE = {
    Bound.REQUEST: (
        "The batches of this request up to that for {place} decompress to more than {size} bytes together, which the "
        "proxy in front of the cluster does not allow. Send smaller requests, or have {key} raised."
    ),
    Bound.RATIO: (
        "The batch for {place} decompresses to more than {size} bytes, too many for its compressed size, which the "
        "proxy in front of the cluster does not allow. Send smaller batches, or have {key} raised."
    ),
    Bound.WINDOW: (
        "The batch for {place} decompresses to more than {size} bytes in one block or window, which the proxy in front "
        "of the cluster does not allow. Send smaller batches, compress with a smaller window, or have {key} raised."
    ),
    Bound.HEADERS: (
        "The records of this request up to those for {place} have more than {size} headers together, which the proxy "
        "in front of the cluster does not allow. Send smaller requests or fewer headers, or have {key} raised."
    ),
}


def over_limit(topic: str, partition: int, over: OverLimit) -> str:
    """Ours, not a broker's: a broker has no such limits."""
    return _ADVICE[over.bound].format(place=f"{topic}-{partition}", size=over.size, key=over.bound.value)
