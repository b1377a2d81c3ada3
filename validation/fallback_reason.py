"""Why the fast path (`validation/ordinary.pyx`) left a Produce request to the slow path."""

from enum import IntEnum


class FallbackReason(IntEnum):
    """The first reason found for a request."""

    SENDER = 0
    """The first request of a connection or after a policy change, or a request of an exempt client."""
    TOPIC = 1
    """A topic that the slow path has not validated for five seconds, or that only the slow path validates."""
    VERSION = 2
    """A Produce version that only the slow path reads."""
    FIELDS = 3
    """Unusual fields around the batches: tagged fields, nulls, many partitions, odd acks."""
    BATCH = 4
    """An unusual or wrong batch header: CRC, size, count, codec, flags."""
    RECORDS = 5
    """Records that are bad, far ahead, or need careful reading."""
    RULES = 6
    """Records that may break a rule, or rules that only the slow path can evaluate."""
    SIZE = 7
    """More than half a MiB in one request."""
