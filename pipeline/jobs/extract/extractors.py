"""Defines timestamp extractors: functions of a record and its partition's previous time that return the event time in
ms.

A negative result is invalid, and its record is skipped (KIP-93). The previous time is the partition time of Kafka
Streams: the highest time extracted so far, or -1 before the first.
"""

import logging
import time
from enum import StrEnum
from typing import Any, Protocol


class TooLate(StrEnum):
    """The treatment of a record whose event time is after Spark's latest timestamp (year 294,247).

    FAIL ends the query. SKIP drops the record. NULL keeps it with a null `event_time`; its `timestamp` keeps the
    number.
    """

    FAIL = "fail"
    SKIP = "skip"
    NULL = "null"


NO_TIME = -1
_log = logging.getLogger(__name__)


class InvalidTimestamp(Exception):
    """Raised if a record has no usable time. The text names topic, partition, offset and a fix."""


class TimestampedRecord(Protocol):
    """A row, whose attributes are the columns of the frame; at least these exist."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class TimestampExtractor(Protocol):
    """The interface of extractors. A custom extractor must be picklable, because it is sent to executors."""

    def extract(self, record: Any, previous: int) -> int:
        """Return the event time in ms; negative to skip the record. `previous` is -1 if unknown."""


class FailOnInvalidTimestamp:
    """Returns the record's timestamp; a negative one fails the query. This is the default."""

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
    """Returns the record's timestamp. Records with a negative one are logged, skipped and counted."""

    def extract(self, record: TimestampedRecord, previous: int) -> int:
        """Return the timestamp; negative to skip the record."""
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
