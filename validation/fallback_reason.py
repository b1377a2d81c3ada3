"""Why the fast path has left a Produce request to who looks closer (`validation/ordinary.pyx`)."""

from enum import IntEnum


class FallbackReason(IntEnum):
    """One reason for each request: the first that was found."""

    SENDER = 0
    """The connection's first request, the first since a policy has changed, or one of a client that is exempt."""
    TOPIC = 1
    """A topic that nobody has looked at for five seconds, or one that only the slow path validates."""
    VERSION = 2
    """A version of Produce that only the slow path reads."""
    FIELDS = 3
    """Something unusual around the batches: tagged fields, nulls, many partitions, odd acks."""
    BATCH = 4
    """A batch whose header is unusual or wrong: its CRC, size, count, codec, flags."""
    RECORDS = 5
    """Records that are bad, far ahead, or that take care to be read."""
    RULES = 6
    """Records that may break a rule, or of which only the rule itself can say so."""
    SIZE = 7
    """More than half a MiB in one request."""
