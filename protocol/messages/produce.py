"""Messages of producers: Produce (key 0), versions 0 to 13, and those of transactions (KIP-98), versions 0 and 1, which
every broker accepts.

Produce requests: 0 and 1 carry magic 0 message sets, 2 magic 1; 3: transactional id, exactly one v2 batch per
partition; 7: zstd allowed (KIP-110); 9: flexible; 12: adds its partitions to the transaction itself (KIP-890);
13: topic ids instead of names (KIP-516). Kafka 4 accepts 3 to 13 but still advertises 0.
Responses: 1: throttle time (at the end). 2: log append time. 5: log start offset. 8: record errors and error message
(KIP-467). 9: flexible. 10: current leader and node endpoints, tagged (KIP-951). 13: topic ids.

This schema is the reference. On the hot path `sluicegate.protocol.produce_request` and
`sluicegate.protocol.produce_response` walk the same bytes by hand; tests compare them with it.
"""

from sluicegate.protocol.messages.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    LEADER_ID_AND_EPOCH,
    NO_LEADER,
    NODE_ENDPOINTS,
    RECORDS,
    STRING,
    UUID,
    ArrayOf,
    Field,
    MessageSchema,
    array,
)

_PRODUCE_VERSIONS = range(0, 14)

PRODUCE_REQUEST = MessageSchema(
    "ProduceRequest",
    _PRODUCE_VERSIONS,
    9,
    Field("transactional_id", STRING, since=3, nullable_since=3, default=None),
    Field("acks", INT16),
    Field("timeout_ms", INT32),
    Field(
        "topic_data",
        array(
            Field("name", STRING, until=12),
            Field("topic_id", UUID, since=13),
            Field(
                "partition_data",
                array(Field("index", INT32), Field("records", RECORDS, nullable_since=0)),
            ),
        ),
    ),
)

PRODUCE_RESPONSE = MessageSchema(
    "ProduceResponse",
    _PRODUCE_VERSIONS,
    9,
    Field(
        "responses",
        array(
            Field("name", STRING, until=12),
            Field("topic_id", UUID, since=13),
            Field(
                "partition_responses",
                array(
                    Field("index", INT32),
                    Field("error_code", INT16),
                    Field("base_offset", INT64),
                    Field("log_append_time_ms", INT64, since=2, default=-1),
                    Field("log_start_offset", INT64, since=5, default=-1),
                    Field(
                        "record_errors",
                        array(
                            Field("batch_index", INT32),
                            Field("batch_index_error_message", STRING, nullable_since=8, default=None),
                        ),
                        since=8,
                        default=[],
                    ),
                    Field("error_message", STRING, since=8, nullable_since=8, default=None),
                    Field("current_leader", LEADER_ID_AND_EPOCH, since=10, tag=0, default=NO_LEADER),
                ),
            ),
        ),
    ),
    Field("throttle_time_ms", INT32, since=1, default=0),
    Field("node_endpoints", NODE_ENDPOINTS, since=10, tag=0, default=[]),
)


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
