"""Kafka's error codes and their names, and this layer's exceptions.

The codes are those on the wire (Kafka 4.3). KIP-467 lists 85 for INVALID_RECORD, but the code on the wire is 87.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """An error code in a broker's response (int16)."""

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
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    UNSUPPORTED_VERSION = 35
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    DUPLICATE_SEQUENCE_NUMBER = 46
    OPERATION_NOT_ATTEMPTED = 55
    SASL_AUTHENTICATION_FAILED = 58
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87
    UNKNOWN_TOPIC_ID = 100


class SenderError(Exception):
    """Raised if the sender's bytes violate Kafka's protocol."""


class FrameSizeError(SenderError):
    """Raised if a size prefix is negative, too small for a header, or larger than allowed.

    `size` is the claimed size (bytes). `head` contains the first bytes as they arrived, including the prefix.
    """

    def __init__(self, reason: str, size: int, head: bytes) -> None:
        super().__init__(reason)
        self.size = size
        self.head = head


class MalformedMessage(SenderError):
    """Raised if a request or response does not follow its schema."""


class MalformedResponse(MalformedMessage):
    """Raised if a broker's response cannot be parsed. A handler raises it after the frame was read."""


class ResponseOutOfOrder(MalformedMessage):
    """Raised if a broker's response does not belong to the oldest in-flight request.

    `expected` is that request's correlation id, or None if no request is in flight. `received` is the response's
    correlation id, or None if the response is too short to contain one.
    """

    def __init__(self, expected: int | None, received: int | None) -> None:
        super().__init__("a response does not belong to the oldest in-flight request of its connection")
        self.expected = expected
        self.received = received


class RequestTooLarge(SenderError):
    """Raised if a request needs more work than is allowed. The message names the configuration key."""


class TooManyRecords(SenderError):
    """Raised if a request has more records than allowed. The message names the configuration key."""


class UnknownApi(SenderError):
    """Raised for an API key or version that the proxy does not know. `api` is the API's name, or `unknown`."""

    def __init__(self, reason: str, api: str = "unknown") -> None:
        super().__init__(reason)
        self.api = api


class RequestBeforeLogin(SenderError):
    """Raised for a request that brokers only accept after a login."""


class UpstreamIsThisProxy(SenderError):
    """Raised for a request that this proxy itself sent, because the configured cluster address leads back to it."""


class SchemaMisuse(Exception):
    """Raised for a value or version that a schema cannot encode. This is a bug in the proxy."""


_NAMES = """
    NONE OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION INVALID_FETCH_SIZE LEADER_NOT_AVAILABLE
    NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE MESSAGE_TOO_LARGE
    STALE_CONTROLLER_EPOCH OFFSET_METADATA_TOO_LARGE NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS
    COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS
    NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS ILLEGAL_GENERATION INCONSISTENT_GROUP_PROTOCOL
    INVALID_GROUP_ID UNKNOWN_MEMBER_ID INVALID_SESSION_TIMEOUT REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE
    TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_TIMESTAMP
    UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE UNSUPPORTED_VERSION TOPIC_ALREADY_EXISTS INVALID_PARTITIONS
    INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG NOT_CONTROLLER INVALID_REQUEST
    UNSUPPORTED_FOR_MESSAGE_FORMAT POLICY_VIOLATION OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER
    INVALID_PRODUCER_EPOCH INVALID_TXN_STATE INVALID_PRODUCER_ID_MAPPING INVALID_TRANSACTION_TIMEOUT
    CONCURRENT_TRANSACTIONS TRANSACTION_COORDINATOR_FENCED TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    SECURITY_DISABLED OPERATION_NOT_ATTEMPTED KAFKA_STORAGE_ERROR LOG_DIR_NOT_FOUND SASL_AUTHENTICATION_FAILED
    UNKNOWN_PRODUCER_ID REASSIGNMENT_IN_PROGRESS DELEGATION_TOKEN_AUTH_DISABLED DELEGATION_TOKEN_NOT_FOUND
    DELEGATION_TOKEN_OWNER_MISMATCH DELEGATION_TOKEN_REQUEST_NOT_ALLOWED DELEGATION_TOKEN_AUTHORIZATION_FAILED
    DELEGATION_TOKEN_EXPIRED INVALID_PRINCIPAL_TYPE NON_EMPTY_GROUP GROUP_ID_NOT_FOUND
    FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH LISTENER_NOT_FOUND TOPIC_DELETION_DISABLED
    FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH UNSUPPORTED_COMPRESSION_TYPE STALE_BROKER_EPOCH
    OFFSET_NOT_AVAILABLE MEMBER_ID_REQUIRED PREFERRED_LEADER_NOT_AVAILABLE GROUP_MAX_SIZE_REACHED
    FENCED_INSTANCE_ID ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED NO_REASSIGNMENT_IN_PROGRESS
    GROUP_SUBSCRIBED_TO_TOPIC INVALID_RECORD UNSTABLE_OFFSET_COMMIT THROTTLING_QUOTA_EXCEEDED PRODUCER_FENCED
    RESOURCE_NOT_FOUND DUPLICATE_RESOURCE UNACCEPTABLE_CREDENTIAL INCONSISTENT_VOTER_SET INVALID_UPDATE_VERSION
    FEATURE_UPDATE_FAILED PRINCIPAL_DESERIALIZATION_FAILURE SNAPSHOT_NOT_FOUND POSITION_OUT_OF_RANGE
    UNKNOWN_TOPIC_ID DUPLICATE_BROKER_REGISTRATION BROKER_ID_NOT_REGISTERED INCONSISTENT_TOPIC_ID
    INCONSISTENT_CLUSTER_ID TRANSACTIONAL_ID_NOT_FOUND FETCH_SESSION_TOPIC_ID_ERROR INELIGIBLE_REPLICA
    NEW_LEADER_ELECTED OFFSET_MOVED_TO_TIERED_STORAGE FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID
    UNSUPPORTED_ASSIGNOR STALE_MEMBER_EPOCH MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE
    UNKNOWN_CONTROLLER_ID UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE INVALID_REGISTRATION TRANSACTION_ABORTABLE
    INVALID_RECORD_STATE SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH FENCED_STATE_EPOCH
    INVALID_VOTER_KEY DUPLICATE_VOTER VOTER_NOT_FOUND INVALID_REGULAR_EXPRESSION REBOOTSTRAP_REQUIRED
    STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED SHARE_SESSION_LIMIT_REACHED
    GROUP_DELETION_FAILED STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED CONTROLLER_ID_NOT_REGISTERED
""".split()


ERROR_NAMES: dict[int, str] = {-1: "UNKNOWN_SERVER_ERROR", **dict(enumerate(_NAMES))}


RETRIABLE_CODES = frozenset(
    {
        *(
            2,
            3,
            5,
            6,
            7,
            9,
            13,
            14,
            15,
            16,
            19,
            20,
            41,
            51,
            56,
            70,
            71,
            72,
            74,
            75,
            78,
            80,
            83,
            84,
            88,
            89,
            100,
            103,
            106,
        ),
        *(122, 123, 133),
    }
)
"""The codes after which Kafka's clients retry a request (`RetriableException`, Kafka 4.3)."""


def error_name(code: int) -> str:
    """Return the name and the code of an error, or only the code if it is unknown."""
    name = ERROR_NAMES.get(code)
    return f"error {code}" if name is None else f"{name} ({code})"
