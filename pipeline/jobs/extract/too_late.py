"""Records whose event time Spark's timestamps cannot hold."""

from enum import StrEnum


class TooLate(StrEnum):
    """What becomes of a record whose event time is later than Spark's timestamps reach (the year 294,247). FAIL ends
    the query, SKIP leaves the record out, NULL keeps it with an `event_time` of null; its `timestamp` tells the number.
    """

    FAIL = "fail"
    SKIP = "skip"
    NULL = "null"
