"""AddPartitionsToTxn (key 24), versions 0 and 1 (KIP-98).

1: throttles after the response (KIP-219). Later ones are flexible; every broker takes these.
"""

from sluicegate.protocol.messages.schema import INT16, INT32, INT64, STRING, ArrayOf, Field, MessageSchema, array

VERSIONS = range(0, 2)

REQUEST = MessageSchema(
    "AddPartitionsToTxnRequest",
    VERSIONS,
    3,
    Field("v3_and_below_transactional_id", STRING),
    Field("v3_and_below_producer_id", INT64),
    Field("v3_and_below_producer_epoch", INT16),
    Field("v3_and_below_topics", array(Field("name", STRING), Field("partitions", ArrayOf(INT32)))),
)

RESPONSE = MessageSchema(
    "AddPartitionsToTxnResponse",
    VERSIONS,
    3,
    Field("throttle_time_ms", INT32),
    Field(
        "results_by_topic_v3_and_below",
        array(
            Field("name", STRING),
            Field("results_by_partition", array(Field("partition_index", INT32), Field("partition_error_code", INT16))),
        ),
    ),
)
