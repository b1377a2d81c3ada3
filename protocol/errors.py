"""Kafka's error codes that sluicegate reads or writes, and what this layer raises.

Codes are those of the wire (Kafka 4.3); KIP-467's text says 85 for INVALID_RECORD, the wire says 87.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """An error code as a broker writes it into an answer (int16)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    COORDINATOR_NOT_AVAILABLE = 15
    INVALID_REQUIRED_ACKS = 21
    TOPIC_AUTHORIZATION_FAILED = 29
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    SASL_AUTHENTICATION_FAILED = 58
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87
    UNKNOWN_TOPIC_ID = 100


class SenderError(Exception):
    """Bytes that break Kafka's protocol: the fault of whoever sent them."""


class FrameSizeError(SenderError):
    """A size prefix that is negative, too small for a header, or larger than allowed.

    `size` is the size that was claimed (bytes); `head` the first bytes as they came, prefix included.
    """

    def __init__(self, reason: str, size: int, head: bytes) -> None:
        super().__init__(reason)
        self.size = size
        self.head = head


class MalformedMessage(SenderError):
    """A request or an answer whose bytes do not follow its schema."""


class ResponseOutOfOrder(MalformedMessage):
    """A broker's response that is not to the oldest request without one: `expected` and `received` are correlation ids.
    `expected` None: every request has its response; `received` None: the response is too short to have one.
    """

    def __init__(self, expected: int | None, received: int | None) -> None:
        super().__init__("a response is not to the oldest request of its connection")
        self.expected = expected
        self.received = received


class RequestTooLarge(SenderError):
    """A request that asks for more work than one request may; the text names the configuration's key."""


class TooManyRecords(SenderError):
    """A request that brings more records than one may; the text names the configuration's key."""


class UnknownApi(SenderError):
    """An API key or version that this proxy does not understand. `api` is the API's name, `unknown` for a key that has
    none.
    """

    def __init__(self, reason: str, api: str = "unknown") -> None:
        super().__init__(reason)
        self.api = api


class LoginMissing(SenderError):
    """A request that a broker takes only from clients that have logged in."""


class UpstreamLeadsBack(SenderError):
    """A request that this proxy itself has sent: what is configured as the cluster is the proxy."""


class SchemaMisuse(Exception):
    """Our own fault: a value or version that a schema cannot encode."""
