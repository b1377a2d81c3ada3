"""Metadata (key 3), versions 0 to 13.

1: racks, controller, internal topics; null asks for all topics. 2: cluster id. 3: throttle time. 4: auto-creation
can be switched off. 5: offline replicas. 6: same. 7: leader epochs. 8: authorized operations. 9: flexible.
10: topic ids. 11: no cluster operations any more. 12: topics can be asked for by id (name null). 13: top-level error.
"""

from sluicegate.protocol.messages.schema import BOOL, INT16, INT32, STRING, UUID, ArrayOf, Field, MessageSchema, array

VERSIONS = range(0, 14)
NO_OPERATIONS = -2147483648

REQUEST = MessageSchema(
    "MetadataRequest",
    VERSIONS,
    9,
    Field(
        "topics",
        array(
            Field("topic_id", UUID, since=10, default=bytes(16)),
            Field("name", STRING, nullable_since=10),
        ),
        nullable_since=1,
    ),
    Field("allow_auto_topic_creation", BOOL, since=4, default=True),
    Field("include_cluster_authorized_operations", BOOL, since=8, until=10, default=False),
    Field("include_topic_authorized_operations", BOOL, since=8, default=False),
)

RESPONSE = MessageSchema(
    "MetadataResponse",
    VERSIONS,
    9,
    Field("throttle_time_ms", INT32, since=3, default=0),
    Field(
        "brokers",
        array(
            Field("node_id", INT32),
            Field("host", STRING),
            Field("port", INT32),
            Field("rack", STRING, since=1, nullable_since=1, default=None),
        ),
    ),
    Field("cluster_id", STRING, since=2, nullable_since=2, default=None),
    Field("controller_id", INT32, since=1, default=-1),
    Field(
        "topics",
        array(
            Field("error_code", INT16),
            Field("name", STRING, nullable_since=12),
            Field("topic_id", UUID, since=10, default=bytes(16)),
            Field("is_internal", BOOL, since=1, default=False),
            Field(
                "partitions",
                array(
                    Field("error_code", INT16),
                    Field("partition_index", INT32),
                    Field("leader_id", INT32),
                    Field("leader_epoch", INT32, since=7, default=-1),
                    Field("replica_nodes", ArrayOf(INT32)),
                    Field("isr_nodes", ArrayOf(INT32)),
                    Field("offline_replicas", ArrayOf(INT32), since=5, default=[]),
                ),
            ),
            Field("topic_authorized_operations", INT32, since=8, default=NO_OPERATIONS),
        ),
    ),
    Field("cluster_authorized_operations", INT32, since=8, until=10, default=NO_OPERATIONS),
    Field("error_code", INT16, since=13, default=0),
)
