"""ShareAcknowledge (key 79), versions 1 and 2; flexible from the start (KIP-932).

1: first stable version. 2: renew acknowledgements (KIP-1222). Version 0 was early access and is not offered.
"""

from sluicegate.protocol.messages.node_endpoints import LEADER_ID_AND_EPOCH, NODE_ENDPOINTS
from sluicegate.protocol.messages.schema import BOOL, INT16, INT32, STRING, UUID, Field, MessageSchema, array
from sluicegate.protocol.messages.share_fetch import ACKNOWLEDGEMENT_BATCHES

VERSIONS = range(1, 3)

REQUEST = MessageSchema(
    "ShareAcknowledgeRequest",
    VERSIONS,
    0,
    Field("group_id", STRING, nullable_since=0, default=None),
    Field("member_id", STRING, nullable_since=0),
    Field("share_session_epoch", INT32),
    Field("is_renew_ack", BOOL, since=2, default=False),
    Field(
        "topics",
        array(
            Field("topic_id", UUID),
            Field(
                "partitions",
                array(Field("partition_index", INT32), Field("acknowledgement_batches", ACKNOWLEDGEMENT_BATCHES)),
            ),
        ),
    ),
)

RESPONSE = MessageSchema(
    "ShareAcknowledgeResponse",
    VERSIONS,
    0,
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable_since=0, default=None),
    Field("acquisition_lock_timeout_ms", INT32, since=2, default=0),
    Field(
        "responses",
        array(
            Field("topic_id", UUID),
            Field(
                "partitions",
                array(
                    Field("partition_index", INT32),
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable_since=0, default=None),
                    Field("current_leader", LEADER_ID_AND_EPOCH),
                ),
            ),
        ),
    ),
    Field("node_endpoints", NODE_ENDPOINTS),
)
