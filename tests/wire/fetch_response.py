"""Defines the response of Fetch (key 1), versions 0 to 18, whose changes `sluicegate.protocol.messages.fetch` lists.

The product parses it by hand (`sluicegate.protocol.fetch_response`) or forwards it.
"""

from sluicegate.protocol.messages.schema import (
    INT16,
    INT32,
    INT64,
    LEADER_ID_AND_EPOCH,
    NO_LEADER,
    NODE_ENDPOINTS,
    RECORDS,
    STRING,
    UUID,
    Field,
    MessageSchema,
    array,
    struct,
)

_FETCH_NO_EPOCH = {"epoch": -1, "end_offset": -1}
_FETCH_NO_SNAPSHOT = {"end_offset": -1, "epoch": -1}

FETCH_RESPONSE = MessageSchema(
    "FetchResponse",
    range(0, 19),
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
                        default=_FETCH_NO_EPOCH,
                    ),
                    Field("current_leader", LEADER_ID_AND_EPOCH, since=12, tag=1, default=NO_LEADER),
                    Field(
                        "snapshot_id",
                        struct(Field("end_offset", INT64), Field("epoch", INT32)),
                        since=12,
                        tag=2,
                        default=_FETCH_NO_SNAPSHOT,
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
