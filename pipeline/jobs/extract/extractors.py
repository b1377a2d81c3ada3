"""Records whose event time Spark's timestamps cannot hold."""

import logging
import time
from enum import StrEnum
from typing import Any, Protocol


class TooLate(StrEnum):
    """What becomes of a record whose event time is later than Spark's timestamps reach (the year 294,247). FAIL ends
    the query, SKIP leaves the record out, NULL keeps it with an `event_time` of null; its `timestamp` tells the number.
    """

    FAIL = "fail"
    SKIP = "skip"
    NULL = "null"


NO_TIME = -1
_log = logging.getLogger(__name__)


class InvalidTimestamp(Exception):
    """A record has no usable time; the text names topic, partition and offset, and says what to do."""


class Record(Protocol):
    """A row: attributes are the columns that the frame has, these at least."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class TimestampExtractor(Protocol):
    """One's own must be picklable: it is sent to executors."""

    def extract(self, record: Any, previous: int) -> int:
        """The event time in ms; negative: skip the record. `previous` is -1 where none is known."""


class FailOnInvalidTimestamp:
    """The default: the record's timestamp, and an end to the query where it is negative."""

    def extract(self, record: Record, previous: int) -> int:
        """Raises InvalidTimestamp."""
        if record.timestamp < 0:
            raise InvalidTimestamp(
                f"{_place(record)} has the timestamp {record.timestamp}, which is negative: a producer older than "
                "Kafka 0.10, or one that sets times by itself. LogAndSkipOnInvalidTimestamp skips such records, "
                "UsePreviousTimeOnInvalidTimestamp takes the partition's time, and sluicegate-spark repair mends "
                "the topic"
            )
        return record.timestamp


class LogAndSkipOnInvalidTimestamp:
    """The record's timestamp; where it is negative, a warning, and the record is skipped and counted."""

    def extract(self, record: Record, previous: int) -> int:
        """Negative for a record to be skipped."""
        if record.timestamp < 0:
            _log.warning("%s is skipped: its timestamp %d is negative", _place(record), record.timestamp)
        return record.timestamp


class UsePreviousTimeOnInvalidTimestamp:
    """The record's timestamp; where it is negative, the partition's time."""

    def extract(self, record: Record, previous: int) -> int:
        """Raises InvalidTimestamp when the partition has no time yet."""
        if record.timestamp >= 0:
            return record.timestamp
        if previous < 0:
            raise InvalidTimestamp(
                f"{_place(record)} has the timestamp {record.timestamp}, and no record before it in its partition "
                "has a valid one to go by"
            )
        return previous


class WallclockTimestampExtractor:
    """When the record is processed."""

    def extract(self, record: Record, previous: int) -> int:
        """The present."""
        return time.time_ns() // 1_000_000


def _place(record: Record) -> str:
    return f"{record.topic}-{record.partition} offset {record.offset}"
