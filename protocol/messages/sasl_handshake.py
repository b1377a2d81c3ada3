"""SaslHandshake (key 17), versions 0 and 1; never flexible (KAFKA-9577).

After version 0 the tokens of the mechanism follow raw, each behind an int32 size; after version 1 they travel in
SaslAuthenticate requests (KIP-152).
"""

from sluicegate.protocol.messages.schema import INT16, STRING, ArrayOf, Field, MessageSchema

VERSIONS = range(0, 2)
_NEVER = 32767

REQUEST = MessageSchema("SaslHandshakeRequest", VERSIONS, _NEVER, Field("mechanism", STRING))

RESPONSE = MessageSchema(
    "SaslHandshakeResponse", VERSIONS, _NEVER, Field("error_code", INT16), Field("mechanisms", ArrayOf(STRING))
)
