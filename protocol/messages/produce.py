"""Defines Produce (key 0), versions 0 to 13.

Requests: versions 0 and 1 contain message sets of magic 0, and version 2 of magic 1. 3 adds the transactional id, and
allows exactly one v2 batch per partition. 7 allows zstd (KIP-110). 9 is flexible. 12 adds its partitions to the
transaction itself (KIP-890). 13 has topic ids instead of names (KIP-516). Kafka 4 accepts 3 to 13 but still advertises
0.

Responses: 1 adds the throttle time (at the end). 2 adds the log append time. 5 adds the log start offset. 8 adds record
errors and an error message (KIP-467). 9 is flexible. 10 adds tagged fields for the current leader and node endpoints
(KIP-951). 13 has topic ids.

This schema is the reference. On the hot path, `sluicegate.protocol.produce_request` and
`sluicegate.protocol.produce_response` walk the same bytes without construct. Tests compare the results with this
schema.
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
)

_PRODUCE_VERSIONS = range(0, 14)

PRODUCE_REQUEST = MessageSchema(
    "ProduceRequest",
    _PRODUCE_VERSIONS,
    9,
    Field("transactional_id", STRING, since=3, nullable_since=3, default=None),
    Field("acks", INT16),
    Field("timeout_ms", INT32),
    Field(
        "topic_data",
        array(
            Field("name", STRING, until=12),
            Field("topic_id", UUID, since=13),
            Field(
                "partition_data",
                array(Field("index", INT32), Field("records", RECORDS, nullable_since=0)),
            ),
        ),
    ),
)

PRODUCE_RESPONSE = MessageSchema(
    "ProduceResponse",
    _PRODUCE_VERSIONS,
    9,
    Field(
        "responses",
        array(
            Field("name", STRING, until=12),
            Field("topic_id", UUID, since=13),
            Field(
                "partition_responses",
                array(
                    Field("index", INT32),
                    Field("error_code", INT16),
                    Field("base_offset", INT64),
                    Field("log_append_time_ms", INT64, since=2, default=-1),
                    Field("log_start_offset", INT64, since=5, default=-1),
                    Field(
                        "record_errors",
                        array(
                            Field("batch_index", INT32),
                            Field("batch_index_error_message", STRING, nullable_since=8, default=None),
                        ),
                        since=8,
                        default=[],
                    ),
                    Field("error_message", STRING, since=8, nullable_since=8, default=None),
                    Field("current_leader", LEADER_ID_AND_EPOCH, since=10, tag=0, default=NO_LEADER),
                ),
            ),
        ),
    ),
    Field("throttle_time_ms", INT32, since=1, default=0),
    Field("node_endpoints", NODE_ENDPOINTS, since=10, tag=0, default=[]),
)
