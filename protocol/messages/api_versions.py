"""ApiVersions (key 18), versions 0 to 4.

1: throttle time. 2: same. 3: flexible; the request names the client's software, the answer adds tagged features
(KIP-511, KIP-584). 4: same layout, features may have a minimum of 0 (KAFKA-17011).
The answer's header is always version 0, and a broker that does not know the version asked for answers in version 0
with UNSUPPORTED_VERSION and its range for this one key.
"""

from sluicegate.protocol.messages.schema import BOOL, INT16, INT32, INT64, STRING, Field, MessageSchema, array

VERSIONS = range(0, 5)

REQUEST = MessageSchema(
    "ApiVersionsRequest",
    VERSIONS,
    3,
    Field("client_software_name", STRING, since=3),
    Field("client_software_version", STRING, since=3),
)

RESPONSE = MessageSchema(
    "ApiVersionsResponse",
    VERSIONS,
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
