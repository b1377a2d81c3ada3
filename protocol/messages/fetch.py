"""Fetch (key 1), versions 0 to 18.

1: throttle time. 3: max bytes. 4: isolation level and aborted transactions. 5: log start offsets. 7: fetch sessions
(KIP-227). 9: leader epochs (KIP-320). 10: zstd. 11: rack and preferred replica (KIP-392). 12: flexible, tagged
diverging epoch, current leader and snapshot id. 13: topic ids. 15: replica state (KIP-903). 16: node endpoints at
the very end (KIP-951). 17: replica directory ids. 18: high watermark in requests.

The proxy offers clients at most v15 (see `sluicegate.protocol.api`); all versions are known here because the tools that
read topics raw use them.
"""

from sluicegate.protocol.messages.node_endpoints import LEADER_ID_AND_EPOCH, NO_LEADER, NODE_ENDPOINTS
from sluicegate.protocol.messages.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    ArrayOf,
    Field,
    MessageSchema,
    array,
    struct,
)

VERSIONS = range(0, 19)
_NO_EPOCH = {"epoch": -1, "end_offset": -1}
_NO_SNAPSHOT = {"end_offset": -1, "epoch": -1}
_NO_REPLICA = {"replica_id": -1, "replica_epoch": -1}
UNKNOWN_HIGH_WATERMARK = 9223372036854775807

REQUEST = MessageSchema(
    "FetchRequest",
    VERSIONS,
    12,
    Field("cluster_id", STRING, since=12, nullable_since=12, tag=0, default=None),
    Field("replica_id", INT32, until=14, default=-1),
    Field(
        "replica_state",
        struct(Field("replica_id", INT32), Field("replica_epoch", INT64)),
        since=15,
        tag=1,
        default=_NO_REPLICA,
    ),
    Field("max_wait_ms", INT32),
    Field("min_bytes", INT32),
    Field("max_bytes", INT32, since=3, default=2147483647),
    Field("isolation_level", INT8, since=4, default=0),
    Field("session_id", INT32, since=7, default=0),
    Field("session_epoch", INT32, since=7, default=-1),
    Field(
        "topics",
        array(
            Field("topic", STRING, until=12),
            Field("topic_id", UUID, since=13),
            Field(
                "partitions",
                array(
                    Field("partition", INT32),
                    Field("current_leader_epoch", INT32, since=9, default=-1),
                    Field("fetch_offset", INT64),
                    Field("last_fetched_epoch", INT32, since=12, default=-1),
                    Field("log_start_offset", INT64, since=5, default=-1),
                    Field("partition_max_bytes", INT32),
                    Field("replica_directory_id", UUID, since=17, tag=0, default=bytes(16)),
                    Field("high_watermark", INT64, since=18, tag=1, default=UNKNOWN_HIGH_WATERMARK),
                ),
            ),
        ),
    ),
    Field(
        "forgotten_topics_data",
        array(
            Field("topic", STRING, until=12),
            Field("topic_id", UUID, since=13),
            Field("partitions", ArrayOf(INT32)),
        ),
        since=7,
        default=[],
    ),
    Field("rack_id", STRING, since=11, default=""),
)

RESPONSE = MessageSchema(
    "FetchResponse",
    VERSIONS,
    12,
    Field("throttle_time_ms", INT32, since=1, default=0),
    Field("error_code", INT16, since=7, default=0),
    Field("session_id", INT32, since=7, default=0),
    Field(
        "responses",
        array(
            Field("topic", STRING, until=12),
            Field("topic_id", UUID, since=13),
            Field(
                "partitions",
                array(
                    Field("partition_index", INT32),
                    Field("error_code", INT16),
                    Field("high_watermark", INT64),
                    Field("last_stable_offset", INT64, since=4, default=-1),
                    Field("log_start_offset", INT64, since=5, default=-1),
                    Field(
                        "diverging_epoch",
                        struct(Field("epoch", INT32), Field("end_offset", INT64)),
                        since=12,
                        tag=0,
                        default=_NO_EPOCH,
                    ),
                    Field("current_leader", LEADER_ID_AND_EPOCH, since=12, tag=1, default=NO_LEADER),
                    Field(
                        "snapshot_id",
                        struct(Field("end_offset", INT64), Field("epoch", INT32)),
                        since=12,
                        tag=2,
                        default=_NO_SNAPSHOT,
                    ),
                    Field(
                        "aborted_transactions",
                        array(Field("producer_id", INT64), Field("first_offset", INT64)),
                        since=4,
                        nullable_since=4,
                        default=None,
                    ),
                    Field("preferred_read_replica", INT32, since=11, default=-1),
                    Field("records", RECORDS, nullable_since=0),
                ),
            ),
        ),
    ),
    Field("node_endpoints", NODE_ENDPOINTS, since=16, tag=0, default=[]),
)
