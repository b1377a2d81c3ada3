"""Defines the responses for share groups (KIP-932): ShareFetch and ShareAcknowledge, which the proxy only forwards."""

from sluicegate.protocol.messages.schema import (
    INT16,
    INT32,
    INT64,
    LEADER_ID_AND_EPOCH,
    NODE_ENDPOINTS,
    RECORDS,
    STRING,
    UUID,
    Field,
    MessageSchema,
    array,
)

# ShareFetch (key 78), versions 1 and 2; flexible from the start (KIP-932).
#
# 1: first stable version. 2: acquire mode and renew acknowledgements (KIP-1206, KIP-1222). Version 0 was early access
# in Kafka 4.0 and is not offered.
_SHARE_FETCH_VERSIONS = range(1, 3)

_ERROR = (Field("error_code", INT16), Field("error_message", STRING, nullable_since=0, default=None))
_OUTCOME = (Field("throttle_time_ms", INT32), *_ERROR)
_PARTITION_OUTCOME = (Field("partition_index", INT32), *_ERROR)

SHARE_FETCH_RESPONSE = MessageSchema(
    "ShareFetchResponse",
    _SHARE_FETCH_VERSIONS,
    0,
    *_OUTCOME,
    Field("acquisition_lock_timeout_ms", INT32),
    Field(
        "responses",
        array(
            Field("topic_id", UUID),
            Field(
                "partitions",
                array(
                    *_PARTITION_OUTCOME,
                    Field("acknowledge_error_code", INT16),
                    Field("acknowledge_error_message", STRING, nullable_since=0, default=None),
                    Field("current_leader", LEADER_ID_AND_EPOCH),
                    # Kafka's definition allows null in version 0 only, but its brokers write null in all versions.
                    Field("records", RECORDS, nullable_since=0),
                    Field(
                        "acquired_records",
                        array(
                            Field("first_offset", INT64), Field("last_offset", INT64), Field("delivery_count", INT16)
                        ),
                    ),
                ),
            ),
        ),
    ),
    Field("node_endpoints", NODE_ENDPOINTS),
)


# ShareAcknowledge (key 79), versions 1 and 2; flexible from the start (KIP-932).
#
# 1: first stable version. 2: renew acknowledgements (KIP-1222). Version 0 was early access and is not offered.
_SHARE_ACKNOWLEDGE_VERSIONS = range(1, 3)

SHARE_ACKNOWLEDGE_RESPONSE = MessageSchema(
    "ShareAcknowledgeResponse",
    _SHARE_ACKNOWLEDGE_VERSIONS,
    0,
    *_OUTCOME,
    Field("acquisition_lock_timeout_ms", INT32, since=2, default=0),
    Field(
        "responses",
        array(
            Field("topic_id", UUID),
            Field(
                "partitions",
                array(
                    *_PARTITION_OUTCOME,
                    Field("current_leader", LEADER_ID_AND_EPOCH),
                ),
            ),
        ),
    ),
    Field("node_endpoints", NODE_ENDPOINTS),
)
