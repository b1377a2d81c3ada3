"""EndTxn (key 26), versions 0 and 1 (KIP-98).

1: throttles after the response (KIP-219). Later ones are flexible; every broker takes these.
"""

from sluicegate.protocol.messages.schema import BOOL, INT16, INT32, INT64, STRING, Field, MessageSchema

VERSIONS = range(0, 2)

REQUEST = MessageSchema(
    "EndTxnRequest",
    VERSIONS,
    3,
    Field("transactional_id", STRING),
    Field("producer_id", INT64),
    Field("producer_epoch", INT16),
    Field("committed", BOOL),
)

RESPONSE = MessageSchema(
    "EndTxnResponse",
    VERSIONS,
    3,
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
)
