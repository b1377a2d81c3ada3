"""ListOffsets (key 2), versions 1 to 11.

1: one offset for each partition, with its timestamp (0, gone since Kafka 4, gave segments' first offsets). 2: isolation
level, throttle time. 4: leader epochs. 6: flexible. 7: -3 asks for the largest timestamp (KIP-734). 8: -4 for the local
log start (KIP-405). 9: -5 for the last tiered offset (KIP-1005). 10: timeout (KIP-1075). 11: -6 for the earliest offset
not yet uploaded (KIP-1023).

The proxy lets these pass; the pipeline asks them.
"""

from sluicegate.protocol.messages.schema import INT8, INT16, INT32, INT64, STRING, Field, MessageSchema, array

VERSIONS = range(1, 12)
LATEST, EARLIEST = -1, -2
NOT_FOUND = -1

REQUEST = MessageSchema(
    "ListOffsetsRequest",
    VERSIONS,
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

RESPONSE = MessageSchema(
    "ListOffsetsResponse",
    VERSIONS,
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
