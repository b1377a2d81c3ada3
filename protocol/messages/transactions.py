"""What a transactional producer asks (KIP-98), in the versions before the flexible ones, which all brokers take.

InitProducerId (key 22) 0 and 1, AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26) 0 to 2, TxnOffsetCommit (28)
0 and 1. Version 1 of each: the broker throttles after its response (KIP-219). Only the pipeline asks them.
"""

from sluicegate.protocol.messages.schema import BOOL, INT16, INT32, INT64, STRING, ArrayOf, Field, MessageSchema, array

_VERSIONS = range(0, 2)
_NEVER_FLEXIBLE = 99
_THROTTLE = Field("throttle_time_ms", INT32)
_PRODUCER = (Field("producer_id", INT64), Field("producer_epoch", INT16))
_RESULTS = array(
    Field("name", STRING),
    Field("partitions", array(Field("partition_index", INT32), Field("error_code", INT16))),
)

INIT_PRODUCER_ID_REQUEST = MessageSchema(
    "InitProducerIdRequest",
    _VERSIONS,
    _NEVER_FLEXIBLE,
    Field("transactional_id", STRING, nullable_since=0),
    Field("transaction_timeout_ms", INT32),
)
INIT_PRODUCER_ID_RESPONSE = MessageSchema(
    "InitProducerIdResponse", _VERSIONS, _NEVER_FLEXIBLE, _THROTTLE, Field("error_code", INT16), *_PRODUCER
)

ADD_PARTITIONS_REQUEST = MessageSchema(
    "AddPartitionsToTxnRequest",
    _VERSIONS,
    _NEVER_FLEXIBLE,
    Field("transactional_id", STRING),
    *_PRODUCER,
    Field("topics", array(Field("name", STRING), Field("partitions", ArrayOf(INT32)))),
)
ADD_PARTITIONS_RESPONSE = MessageSchema(
    "AddPartitionsToTxnResponse", _VERSIONS, _NEVER_FLEXIBLE, _THROTTLE, Field("results", _RESULTS)
)

ADD_OFFSETS_REQUEST = MessageSchema(
    "AddOffsetsToTxnRequest",
    _VERSIONS,
    _NEVER_FLEXIBLE,
    Field("transactional_id", STRING),
    *_PRODUCER,
    Field("group_id", STRING),
)
ADD_OFFSETS_RESPONSE = MessageSchema(
    "AddOffsetsToTxnResponse", _VERSIONS, _NEVER_FLEXIBLE, _THROTTLE, Field("error_code", INT16)
)

END_REQUEST = MessageSchema(
    "EndTxnRequest",
    _VERSIONS,
    _NEVER_FLEXIBLE,
    Field("transactional_id", STRING),
    *_PRODUCER,
    Field("committed", BOOL),
)
END_RESPONSE = MessageSchema("EndTxnResponse", _VERSIONS, _NEVER_FLEXIBLE, _THROTTLE, Field("error_code", INT16))

OFFSET_COMMIT_REQUEST = MessageSchema(
    "TxnOffsetCommitRequest",
    _VERSIONS,
    _NEVER_FLEXIBLE,
    Field("transactional_id", STRING),
    Field("group_id", STRING),
    *_PRODUCER,
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
OFFSET_COMMIT_RESPONSE = MessageSchema(
    "TxnOffsetCommitResponse", _VERSIONS, _NEVER_FLEXIBLE, _THROTTLE, Field("topics", _RESULTS)
)
