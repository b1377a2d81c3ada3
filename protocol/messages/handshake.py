"""Defines the first messages of a connection: ApiVersions, SaslHandshake and SaslAuthenticate."""

from sluicegate.protocol.messages.schema import (
    BOOL,
    BYTES,
    INT16,
    INT32,
    INT64,
    STRING,
    ArrayOf,
    Field,
    MessageSchema,
    array,
)

# ApiVersions (key 18), versions 0 to 5.
#
# Changes by version: 1 adds the throttle time. 2 changes nothing. 3 is flexible, with tagged features (KIP-584). 4 has
# the same layout, but features may have a minimum of 0 (KAFKA-17011). 5 has the same response. Its request names the
# expected cluster and node, and any other broker responds with REBOOTSTRAP_REQUIRED (KIP-1242).
#
# The response's header always has version 0. A broker that does not support the requested version responds in version 0
# with UNSUPPORTED_VERSION, and with its range of versions for this key only.
_API_VERSIONS_VERSIONS = range(0, 6)

API_VERSIONS_RESPONSE = MessageSchema(
    "ApiVersionsResponse",
    _API_VERSIONS_VERSIONS,
    3,
    Field("error_code", INT16),
    Field(
        "api_keys",
        array(Field("api_key", INT16), Field("min_version", INT16), Field("max_version", INT16)),
    ),
    Field("throttle_time_ms", INT32, since=1, default=0),
    Field(
        "supported_features",
        array(Field("name", STRING), Field("min_version", INT16), Field("max_version", INT16)),
        since=3,
        tag=0,
        default=[],
    ),
    Field("finalized_features_epoch", INT64, since=3, tag=1, default=-1),
    Field(
        "finalized_features",
        array(Field("name", STRING), Field("max_version_level", INT16), Field("min_version_level", INT16)),
        since=3,
        tag=2,
        default=[],
    ),
    Field("zk_migration_ready", BOOL, since=3, tag=3, default=False),
)


# SaslHandshake (key 17), versions 0 and 1, which are never flexible (KAFKA-9577).
#
# After version 0, the mechanism's tokens follow as raw bytes, each preceded by an int32 size. After version 1, they
# follow in SaslAuthenticate requests (KIP-152).
_SASL_HANDSHAKE_VERSIONS = range(0, 2)
_SASL_HANDSHAKE_NEVER = 32767

SASL_HANDSHAKE_REQUEST = MessageSchema(
    "SaslHandshakeRequest", _SASL_HANDSHAKE_VERSIONS, _SASL_HANDSHAKE_NEVER, Field("mechanism", STRING)
)

SASL_HANDSHAKE_RESPONSE = MessageSchema(
    "SaslHandshakeResponse",
    _SASL_HANDSHAKE_VERSIONS,
    _SASL_HANDSHAKE_NEVER,
    Field("error_code", INT16),
    Field("mechanisms", ArrayOf(STRING)),
)


# SaslAuthenticate (key 36), versions 0 to 2 (KIP-152).
#
# Version 1 adds the session lifetime (KIP-368). Version 2 is flexible.
_SASL_AUTHENTICATE_VERSIONS = range(0, 3)

SASL_AUTHENTICATE_REQUEST = MessageSchema(
    "SaslAuthenticateRequest", _SASL_AUTHENTICATE_VERSIONS, 2, Field("auth_bytes", BYTES)
)

SASL_AUTHENTICATE_RESPONSE = MessageSchema(
    "SaslAuthenticateResponse",
    _SASL_AUTHENTICATE_VERSIONS,
    2,
    Field("error_code", INT16),
    Field("error_message", STRING, nullable_since=0),
    Field("auth_bytes", BYTES),
    Field("session_lifetime_ms", INT64, since=1, default=0),
)
