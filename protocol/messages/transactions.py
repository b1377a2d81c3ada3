"""Defines the message that starts transactions (KIP-98), in versions 0 and 1, which every broker accepts."""

from sluicegate.protocol.messages.schema import INT16, INT32, INT64, STRING, Field, MessageSchema

# InitProducerId (key 22), versions 0 and 1 (KIP-98).
#
# From version 1 on, brokers throttle after the response (KIP-219). Later versions are flexible.
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
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("producer_id", INT64),
    Field("producer_epoch", INT16),
)
