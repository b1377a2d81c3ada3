"""Defines messages about the cluster: Metadata, DescribeQuorum, DescribeConfigs."""

from sluicegate.protocol.messages.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    ArrayOf,
    Field,
    MessageSchema,
    array,
)

# Metadata (key 3), versions 0 to 13.
#
# Changes by version: 1 adds racks, the controller and internal topics, and requests all topics with null. 2 adds the
# cluster id. 3 adds the throttle time. 4 can disable the automatic creation of topics. 5 adds offline replicas. 6
# changes nothing. 7 adds leader epochs. 8 adds authorized operations. 9 is flexible. 10 adds topic ids. 11 removes the
# cluster's authorized operations. 12 can request topics by id (with a null name). 13 adds a top-level error.
_METADATA_VERSIONS = range(0, 14)
NO_OPERATIONS = -2147483648

METADATA_REQUEST = MessageSchema(
    "MetadataRequest",
    _METADATA_VERSIONS,
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

METADATA_RESPONSE = MessageSchema(
    "MetadataResponse",
    _METADATA_VERSIONS,
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


# DescribeQuorum (key 55), versions 0 and 1, which are both flexible.
#
# Version 1 adds the times at which each replica last fetched and was last caught up, by the leader's clock (KIP-836).
# For itself, the leader returns its current time. Version 2 adds the voters' addresses, which are not used here.
#
# The proxy forwards these requests; `sluicegate doctor` sends one.
_DESCRIBE_QUORUM_VERSIONS = range(0, 2)
METADATA_TOPIC = "__cluster_metadata"

_DESCRIBE_QUORUM_REPLICAS = array(
    Field("replica_id", INT32),
    Field("log_end_offset", INT64),
    Field("last_fetch_timestamp", INT64, since=1, default=-1),
    Field("last_caught_up_timestamp", INT64, since=1, default=-1),
)

DESCRIBE_QUORUM_REQUEST = MessageSchema(
    "DescribeQuorumRequest",
    _DESCRIBE_QUORUM_VERSIONS,
    0,
    Field("topics", array(Field("topic_name", STRING), Field("partitions", array(Field("partition_index", INT32))))),
)

DESCRIBE_QUORUM_RESPONSE = MessageSchema(
    "DescribeQuorumResponse",
    _DESCRIBE_QUORUM_VERSIONS,
    0,
    Field("error_code", INT16),
    Field(
        "topics",
        array(
            Field("topic_name", STRING),
            Field(
                "partitions",
                array(
                    Field("partition_index", INT32),
                    Field("error_code", INT16),
                    Field("leader_id", INT32),
                    Field("leader_epoch", INT32),
                    Field("high_watermark", INT64),
                    Field("current_voters", _DESCRIBE_QUORUM_REPLICAS),
                    Field("observers", _DESCRIBE_QUORUM_REPLICAS),
                ),
            ),
        ),
    ),
)


# DescribeConfigs (key 32), versions 0 to 4.
#
# Changes by version: 1 replaces is_default with synonyms and the value's source. 2 changes nothing. 3 adds the type and
# the documentation. 4 is flexible.
_DESCRIBE_CONFIGS_VERSIONS = range(0, 5)

DESCRIBE_CONFIGS_REQUEST = MessageSchema(
    "DescribeConfigsRequest",
    _DESCRIBE_CONFIGS_VERSIONS,
    4,
    Field(
        "resources",
        array(
            Field("resource_type", INT8),
            Field("resource_name", STRING),
            Field("configuration_keys", ArrayOf(STRING), nullable_since=0),
        ),
    ),
    Field("include_synonyms", BOOL, since=1, default=False),
    Field("include_documentation", BOOL, since=3, default=False),
)

DESCRIBE_CONFIGS_RESPONSE = MessageSchema(
    "DescribeConfigsResponse",
    _DESCRIBE_CONFIGS_VERSIONS,
    4,
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        array(
            Field("error_code", INT16),
            Field("error_message", STRING, nullable_since=0),
            Field("resource_type", INT8),
            Field("resource_name", STRING),
            Field(
                "configs",
                array(
                    Field("name", STRING),
                    Field("value", STRING, nullable_since=0),
                    Field("read_only", BOOL),
                    Field("is_default", BOOL, until=0, default=False),
                    Field("config_source", INT8, since=1, default=-1),
                    Field("is_sensitive", BOOL),
                    Field(
                        "synonyms",
                        array(Field("name", STRING), Field("value", STRING, nullable_since=0), Field("source", INT8)),
                        since=1,
                        default=[],
                    ),
                    Field("config_type", INT8, since=3, default=0),
                    Field("documentation", STRING, since=3, nullable_since=0, default=None),
                ),
            ),
        ),
    ),
)
