"""DescribeCluster (key 60), versions 0 to 2; flexible from the start (KIP-700).

1: endpoint type, brokers or controllers (KIP-919). 2: fenced brokers can be included (KIP-1073).
"""

from sluicegate.protocol.messages.schema import BOOL, INT8, INT16, INT32, STRING, Field, MessageSchema, array

VERSIONS = range(0, 3)

REQUEST = MessageSchema(
    "DescribeClusterRequest",
    VERSIONS,
    0,
    Field("include_cluster_authorized_operations", BOOL),
    Field("endpoint_type", INT8, since=1, default=1),
    Field("include_fenced_brokers", BOOL, since=2, default=False),
)

RESPONSE = MessageSchema(
    "DescribeClusterResponse",
    VERSIONS,
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
