"""TxnOffsetCommit (key 28), versions 0 and 1 (KIP-98).

1: throttles after the response (KIP-219). 2 adds a leader epoch, later ones are flexible; every broker takes these.
"""

from sluicegate.protocol.messages.schema import INT16, INT32, INT64, STRING, Field, MessageSchema, array

VERSIONS = range(0, 2)

REQUEST = MessageSchema(
    "TxnOffsetCommitRequest",
    VERSIONS,
    3,
    Field("transactional_id", STRING),
    Field("group_id", STRING),
    Field("producer_id", INT64),
    Field("producer_epoch", INT16),
    Field(
        "topics",
        array(
            Field("name", STRING),
            Field(
                "partitions",
                array(
                    Field("partition_index", INT32),
                    Field("committed_offset", INT64),
                    Field("committed_metadata", STRING, nullable_since=0),
                ),
            ),
        ),
    ),
)

RESPONSE = MessageSchema(
    "TxnOffsetCommitResponse",
    VERSIONS,
    3,
    Field("throttle_time_ms", INT32),
    Field(
        "topics",
        array(
            Field("name", STRING),
            Field("partitions", array(Field("partition_index", INT32), Field("error_code", INT16))),
        ),
    ),
)
