"""DescribeQuorum (key 55), versions 0 and 1; both flexible.

1: when each replica last fetched and was last caught up, by the leader's clock (KIP-836); of itself the leader says
what its clock shows now. Version 2 adds the voters' addresses, which nobody here needs.

The proxy lets these pass; `sluicegate doctor` asks one.
"""

from sluicegate.protocol.messages.schema import INT16, INT32, INT64, STRING, Field, MessageSchema, array

VERSIONS = range(0, 2)
METADATA_TOPIC = "__cluster_metadata"

_REPLICAS = array(
    Field("replica_id", INT32),
    Field("log_end_offset", INT64),
    Field("last_fetch_timestamp", INT64, since=1, default=-1),
    Field("last_caught_up_timestamp", INT64, since=1, default=-1),
)

REQUEST = MessageSchema(
    "DescribeQuorumRequest",
    VERSIONS,
    0,
    Field("topics", array(Field("topic_name", STRING), Field("partitions", array(Field("partition_index", INT32))))),
)

RESPONSE = MessageSchema(
    "DescribeQuorumResponse",
    VERSIONS,
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
                    Field("current_voters", _REPLICAS),
                    Field("observers", _REPLICAS),
                ),
            ),
        ),
    ),
)
