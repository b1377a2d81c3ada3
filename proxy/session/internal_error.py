"""What becomes of a request that cannot be judged because sluicegate itself fails (`on.internal.error`)."""

from enum import Enum


class OnInternalError(Enum):
    """The operator's word: whether a fault of the proxy stops what it stands in front of."""

    CLOSE = "close"
    """The connection is closed, and the client tries again: nothing passes unjudged."""
    FORWARD = "forward"
    """The request goes on as it came."""
