"""SaslAuthenticate (key 36), versions 0 to 2 (KIP-152).

1: session lifetime (KIP-368). 2: flexible.
"""

from sluicegate.protocol.messages.schema import BYTES, INT16, INT64, STRING, Field, MessageSchema

VERSIONS = range(0, 3)

REQUEST = MessageSchema("SaslAuthenticateRequest", VERSIONS, 2, Field("auth_bytes", BYTES))

RESPONSE = MessageSchema(
    "SaslAuthenticateResponse",
    VERSIONS,
    2,
    Field("error_code", INT16),
    Field("error_message", STRING, nullable_since=0),
    Field("auth_bytes", BYTES),
    Field("session_lifetime_ms", INT64, since=1, default=0),
)
