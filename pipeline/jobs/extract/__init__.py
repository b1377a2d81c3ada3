"""Computes event time with timestamp extractors, as in Kafka Streams (KIP-93)."""

from sluicegate.pipeline.jobs.extract.event_time import extracted, with_event_time
from sluicegate.pipeline.jobs.extract.extractors import (
    FailOnInvalidTimestamp,
    InvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    TimestampedRecord,
    TimestampExtractor,
    TooLate,
    UsePreviousTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)

__all__ = [
    "FailOnInvalidTimestamp",
    "InvalidTimestamp",
    "LogAndSkipOnInvalidTimestamp",
    "TimestampExtractor",
    "TimestampedRecord",
    "TooLate",
    "UsePreviousTimeOnInvalidTimestamp",
    "WallclockTimestampExtractor",
    "extracted",
    "with_event_time",
]
