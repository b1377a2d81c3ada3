"""Defines messages that the proxy reads or rewrites without a schema."""

from sluicegate.protocol.messages.schema import BOOL, INT8, INT16, INT32, STRING, ArrayOf, Field, MessageSchema, array

# FindCoordinator (key 10), versions 0 to 6.
#
# 1: key type (group or transaction), throttle time, error message. 2: same. 3: flexible. 4: many keys in one request
# (KIP-699): the coordinators become a list. 5: adds TRANSACTION_ABORTABLE (KIP-890). 6: share groups (KIP-932).
_FIND_COORDINATOR_VERSIONS = range(0, 7)

FIND_COORDINATOR_REQUEST = MessageSchema(
    "FindCoordinatorRequest",
    _FIND_COORDINATOR_VERSIONS,
    3,
    Field("key", STRING, until=3),
    Field("key_type", INT8, since=1, default=0),
    Field("coordinator_keys", ArrayOf(STRING), since=4),
)

FIND_COORDINATOR_RESPONSE = MessageSchema(
    "FindCoordinatorResponse",
    _FIND_COORDINATOR_VERSIONS,
    3,
    Field("throttle_time_ms", INT32, since=1, default=0),
    Field("error_code", INT16, until=3),
    Field("error_message", STRING, since=1, until=3, nullable_since=1, default=None),
    Field("node_id", INT32, until=3),
    Field("host", STRING, until=3),
    Field("port", INT32, until=3),
    Field(
        "coordinators",
        array(
            Field("key", STRING),
            Field("node_id", INT32),
            Field("host", STRING),
            Field("port", INT32),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable_since=4),
        ),
        since=4,
    ),
)


# TxnOffsetCommit (key 28), versions 0 and 1 (KIP-98).
TXN_OFFSET_COMMIT_RESPONSE = MessageSchema(
    "TxnOffsetCommitResponse",
    range(0, 2),
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


# DescribeCluster (key 60), versions 0 to 2; flexible from the start (KIP-700).
#
# 1: endpoint type, brokers or controllers (KIP-919). 2: fenced brokers can be included (KIP-1073).
_DESCRIBE_CLUSTER_VERSIONS = range(0, 3)

DESCRIBE_CLUSTER_REQUEST = MessageSchema(
    "DescribeClusterRequest",
    _DESCRIBE_CLUSTER_VERSIONS,
    0,
    Field("include_cluster_authorized_operations", BOOL),
    Field("endpoint_type", INT8, since=1, default=1),
    Field("include_fenced_brokers", BOOL, since=2, default=False),
)

DESCRIBE_CLUSTER_RESPONSE = MessageSchema(
    "DescribeClusterResponse",
    _DESCRIBE_CLUSTER_VERSIONS,
    0,
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable_since=0, default=None),
    Field("endpoint_type", INT8, since=1, default=1),
    Field("cluster_id", STRING),
    Field("controller_id", INT32, default=-1),
    Field(
        "brokers",
        array(
            Field("broker_id", INT32),
            Field("host", STRING),
            Field("port", INT32),
            Field("rack", STRING, nullable_since=0, default=None),
            Field("is_fenced", BOOL, since=2, default=False),
        ),
    ),
    Field("cluster_authorized_operations", INT32, default=-2147483648),
)


# ApiVersions (key 18), versions 0 to 4. 3: flexible, names the client's software (KIP-511).
API_VERSIONS_REQUEST = MessageSchema(
    "ApiVersionsRequest",
    range(0, 6),
    3,
    Field("client_software_name", STRING, since=3),
    Field("client_software_version", STRING, since=3),
    Field("cluster_id", STRING, since=5, nullable_since=5, default=None),
    Field("node_id", INT32, since=5, default=-1),
)
