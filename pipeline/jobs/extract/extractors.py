"""Defines timestamp extractors, which return a record's event time (ms).

An extractor receives the record and its partition's previous time. A negative result is invalid, and the record is
skipped (KIP-93). The previous time is the partition time of Kafka Streams: the highest time extracted so far, or -1
before the first record.
"""

import logging
import time
from enum import StrEnum
from typing import Any, Protocol


class TooLate(StrEnum):
    """The treatment of a record whose event time is after Spark's latest timestamp (year 294,247).

    FAIL ends the query. SKIP drops the record. NULL keeps the record with a null `event_time`; its `timestamp` keeps
    the number.
    """

    FAIL = "fail"
    SKIP = "skip"
    NULL = "null"


NO_TIME = -1
_log = logging.getLogger(__name__)


class InvalidTimestamp(Exception):
    """Raised if a record has no usable time. The message names topic, partition and offset, and gives a fix."""


class TimestampedRecord(Protocol):
    """A row with the frame's columns as attributes. At least these attributes exist."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class TimestampExtractor(Protocol):
    """The interface of extractors. A custom extractor must be picklable, because Spark sends it to the executors."""

    def extract(self, record: Any, previous: int) -> int:
        """Return the event time in ms, or a negative number to skip the record. `previous` is -1 if unknown."""


class FailOnInvalidTimestamp:
    """Returns the record's timestamp. A negative timestamp fails the query. This is the default."""

    def extract(self, record: TimestampedRecord, previous: int) -> int:
        """Return the timestamp. Raises InvalidTimestamp."""
        if record.timestamp < 0:
            raise InvalidTimestamp(
                f"{_place(record)} has the timestamp {record.timestamp}, which is negative: a producer older than "
                "Kafka 0.10, or one that sets times by itself. LogAndSkipOnInvalidTimestamp skips such records, "
                "UsePreviousTimeOnInvalidTimestamp uses the partition's time, and sluicegate-spark repair fixes "
                "the topic"
            )
        return record.timestamp


class LogAndSkipOnInvalidTimestamp:
    """Returns the record's timestamp. Records with a negative timestamp are logged, skipped and counted."""

    def extract(self, record: TimestampedRecord, previous: int) -> int:
        """Return the timestamp; a negative number skips the record."""
        if record.timestamp < 0:
            _log.warning("%s skipped: its timestamp %d is negative", _place(record), record.timestamp)
        return record.timestamp


class UsePreviousTimeOnInvalidTimestamp:
    """Returns the record's timestamp, or the partition's time if the timestamp is negative."""

    def extract(self, record: TimestampedRecord, previous: int) -> int:
        """Return the time. Raises InvalidTimestamp if the partition has no time yet."""
        if record.timestamp >= 0:
            return record.timestamp
        if previous < 0:
            raise InvalidTimestamp(
                f"{_place(record)} has the timestamp {record.timestamp}, and no earlier record of its partition "
                "has a valid one"
            )
        return previous


class WallclockTimestampExtractor:
    """Returns the time of processing."""

    def extract(self, record: TimestampedRecord, previous: int) -> int:
        """Return the current time."""
        return time.time_ns() // 1_000_000


def _place(record: TimestampedRecord) -> str:
    return f"{record.topic}-{record.partition} offset {record.offset}"
