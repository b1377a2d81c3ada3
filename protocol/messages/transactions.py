"""Messages of transactions (KIP-98), versions 0 and 1, which every broker accepts."""

from sluicegate.protocol.messages.schema import BOOL, INT16, INT32, INT64, STRING, ArrayOf, Field, MessageSchema, array

_TRANSACTION = (Field("transactional_id", STRING), Field("producer_id", INT64), Field("producer_epoch", INT16))
_OUTCOME = (Field("throttle_time_ms", INT32), Field("error_code", INT16))

# InitProducerId (key 22), versions 0 and 1 (KIP-98).
#
# 1: throttles after the response (KIP-219). Later versions are flexible.
_INIT_PRODUCER_ID_VERSIONS = range(0, 2)

INIT_PRODUCER_ID_REQUEST = MessageSchema(
    "InitProducerIdRequest",
    _INIT_PRODUCER_ID_VERSIONS,
    2,
    Field("transactional_id", STRING, nullable_since=0),
    Field("transaction_timeout_ms", INT32),
)

INIT_PRODUCER_ID_RESPONSE = MessageSchema(
    "InitProducerIdResponse",
    _INIT_PRODUCER_ID_VERSIONS,
    2,
    *_OUTCOME,
    Field("producer_id", INT64),
    Field("producer_epoch", INT16),
)


# AddPartitionsToTxn (key 24), versions 0 and 1 (KIP-98).
#
# 1: throttles after the response (KIP-219). Later versions are flexible.
_ADD_PARTITIONS_TO_TXN_VERSIONS = range(0, 2)

ADD_PARTITIONS_TO_TXN_REQUEST = MessageSchema(
    "AddPartitionsToTxnRequest",
    _ADD_PARTITIONS_TO_TXN_VERSIONS,
    3,
    Field("v3_and_below_transactional_id", STRING),
    Field("v3_and_below_producer_id", INT64),
    Field("v3_and_below_producer_epoch", INT16),
    Field("v3_and_below_topics", array(Field("name", STRING), Field("partitions", ArrayOf(INT32)))),
)

ADD_PARTITIONS_TO_TXN_RESPONSE = MessageSchema(
    "AddPartitionsToTxnResponse",
    _ADD_PARTITIONS_TO_TXN_VERSIONS,
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


# AddOffsetsToTxn (key 25), versions 0 and 1 (KIP-98).
#
# 1: throttles after the response (KIP-219). Later versions are flexible.
_ADD_OFFSETS_TO_TXN_VERSIONS = range(0, 2)

ADD_OFFSETS_TO_TXN_REQUEST = MessageSchema(
    "AddOffsetsToTxnRequest",
    _ADD_OFFSETS_TO_TXN_VERSIONS,
    3,
    *_TRANSACTION,
    Field("group_id", STRING),
)

ADD_OFFSETS_TO_TXN_RESPONSE = MessageSchema(
    "AddOffsetsToTxnResponse",
    _ADD_OFFSETS_TO_TXN_VERSIONS,
    3,
    *_OUTCOME,
)


# EndTxn (key 26), versions 0 and 1 (KIP-98).
#
# 1: throttles after the response (KIP-219). Later versions are flexible.
_END_TXN_VERSIONS = range(0, 2)

END_TXN_REQUEST = MessageSchema(
    "EndTxnRequest",
    _END_TXN_VERSIONS,
    3,
    *_TRANSACTION,
    Field("committed", BOOL),
)

END_TXN_RESPONSE = MessageSchema(
    "EndTxnResponse",
    _END_TXN_VERSIONS,
    3,
    *_OUTCOME,
)


# TxnOffsetCommit (key 28), versions 0 and 1 (KIP-98).
#
# 1: throttles after the response (KIP-219). 2 adds a leader epoch, later versions are flexible.
_TXN_OFFSET_COMMIT_VERSIONS = range(0, 2)

TXN_OFFSET_COMMIT_REQUEST = MessageSchema(
    "TxnOffsetCommitRequest",
    _TXN_OFFSET_COMMIT_VERSIONS,
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

TXN_OFFSET_COMMIT_RESPONSE = MessageSchema(
    "TxnOffsetCommitResponse",
    _TXN_OFFSET_COMMIT_VERSIONS,
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
