"""Defines why the fast path (`validation/ordinary.pyx`) falls back to the slow path for a Produce request."""

from enum import IntEnum


class FallbackReason(IntEnum):
    """The first reason for falling back that the fast path found in a request."""

    SENDER = 0
    """The request is the first on its connection or the first after a policy change, or its client is exempt."""
    TOPIC = 1
    """The slow path has not validated a topic within the last five seconds, or only the slow path can validate it."""
    VERSION = 2
    """Only the slow path reads this Produce version."""
    FIELDS = 3
    """Fields outside the batches are unusual: tagged fields, nulls, many partitions, odd acks."""
    BATCH = 4
    """A batch header is unusual or wrong: CRC, size, count, codec, flags."""
    RECORDS = 5
    """Records are bad, far in the future, or need a careful reading."""
    RULES = 6
    """Records may violate a rule, or only the slow path can evaluate a rule."""
    SIZE = 7
    """The request is larger than half a MiB."""
