"""Defines messages that read topics: Fetch and ListOffsets."""

from sluicegate.protocol.messages.schema import (
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
    struct,
)

# Fetch (key 1), versions 0 to 18.
#
# Changes by version: 1 adds the throttle time. 3 adds max bytes. 4 adds the isolation level and aborted transactions. 5
# adds log start offsets. 7 adds fetch sessions (KIP-227). 9 adds leader epochs (KIP-320). 10 allows zstd. 11 adds the
# rack and the preferred replica (KIP-392). 12 is flexible, with tagged diverging epoch, current leader and snapshot id.
# 13 adds topic ids. 15 adds replica state (KIP-903). 16 adds node endpoints at the very end (KIP-951). 17 adds replica
# directory ids. 18 adds the high watermark in requests.
#
# The proxy offers clients at most v15 (`sluicegate.protocol.api`). The tools that read topics use later versions.
_FETCH_VERSIONS = range(0, 19)
_FETCH_NO_REPLICA = {"replica_id": -1, "replica_epoch": -1}
UNKNOWN_HIGH_WATERMARK = 9223372036854775807

FETCH_REQUEST = MessageSchema(
    "FetchRequest",
    _FETCH_VERSIONS,
    12,
    Field("cluster_id", STRING, since=12, nullable_since=12, tag=0, default=None),
    Field("replica_id", INT32, until=14, default=-1),
    Field(
        "replica_state",
        struct(Field("replica_id", INT32), Field("replica_epoch", INT64)),
        since=15,
        tag=1,
        default=_FETCH_NO_REPLICA,
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

# ListOffsets (key 2), versions 1 to 11.
#
# Changes by version: 1 returns one offset per partition, with its timestamp (version 0, removed in Kafka 4, returned
# the first offsets of segments). 2 adds the isolation level and the throttle time. 4 adds leader epochs. 6 is
# flexible. 7 accepts -3 for the largest timestamp (KIP-734), 8 accepts -4 for the local log start (KIP-405), and 9
# accepts -5 for the last tiered offset (KIP-1005). 10 adds a timeout (KIP-1075). 11 accepts -6 for the earliest offset
# that is not yet uploaded (KIP-1023).
#
# The proxy forwards these requests; the pipeline sends them.
_LIST_OFFSETS_VERSIONS = range(1, 12)
LATEST, EARLIEST = -1, -2
NOT_FOUND = -1

LIST_OFFSETS_REQUEST = MessageSchema(
    "ListOffsetsRequest",
    _LIST_OFFSETS_VERSIONS,
    6,
    Field("replica_id", INT32, default=-1),
    Field("isolation_level", INT8, since=2, default=0),
    Field(
        "topics",
        array(
            Field("name", STRING),
            Field(
                "partitions",
                array(
                    Field("partition_index", INT32),
                    Field("current_leader_epoch", INT32, since=4, default=-1),
                    Field("timestamp", INT64),
                ),
            ),
        ),
    ),
    Field("timeout_ms", INT32, since=10, default=30_000),
)

LIST_OFFSETS_RESPONSE = MessageSchema(
    "ListOffsetsResponse",
    _LIST_OFFSETS_VERSIONS,
    6,
    Field("throttle_time_ms", INT32, since=2, default=0),
    Field(
        "topics",
        array(
            Field("name", STRING),
            Field(
                "partitions",
                array(
                    Field("partition_index", INT32),
                    Field("error_code", INT16),
                    Field("timestamp", INT64, default=-1),
                    Field("offset", INT64, default=NOT_FOUND),
                    Field("leader_epoch", INT32, since=4, default=-1),
                ),
            ),
        ),
    ),
)
