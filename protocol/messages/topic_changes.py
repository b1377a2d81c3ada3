"""Defines the messages with which clients change topics. The proxy reads them to reject changes to its own topics."""

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

_NAME = Field("name", STRING)
_THROTTLE, _TIMEOUT, _VALIDATE_ONLY = (
    Field("throttle_time_ms", INT32, default=0),
    Field("timeout_ms", INT32),
    Field("validate_only", BOOL),
)
_ERROR_CODE = Field("error_code", INT16)
_ERROR_MESSAGE = Field("error_message", STRING, nullable_since=0)
_PARTITION_ERRORS = Field("partitions", array(Field("partition_index", INT32), _ERROR_CODE))

CREATE_TOPICS_REQUEST = MessageSchema(
    "CreateTopicsRequest",
    range(0, 8),
    5,
    Field(
        "topics",
        array(
            _NAME,
            Field("num_partitions", INT32),
            Field("replication_factor", INT16),
            Field("assignments", array(Field("partition_index", INT32), Field("broker_ids", ArrayOf(INT32)))),
            Field("configs", array(_NAME, Field("value", STRING, nullable_since=0))),
        ),
    ),
    _TIMEOUT,
    Field("validate_only", BOOL, since=1),
)
CREATE_TOPICS_RESPONSE = MessageSchema(
    "CreateTopicsResponse",
    range(0, 8),
    5,
    Field("throttle_time_ms", INT32, since=2, default=0),
    Field(
        "topics",
        array(
            _NAME,
            Field("topic_id", UUID, since=7, default=bytes(16)),
            _ERROR_CODE,
            Field("error_message", STRING, since=1, nullable_since=1),
            Field("topic_config_error_code", INT16, since=5, tag=0, default=0),
            Field("num_partitions", INT32, since=5, default=-1),
            Field("replication_factor", INT16, since=5, default=-1),
            Field(
                "configs",
                array(
                    _NAME,
                    Field("value", STRING, nullable_since=5),
                    Field("read_only", BOOL),
                    Field("config_source", INT8),
                    Field("is_sensitive", BOOL),
                ),
                since=5,
                nullable_since=5,
                default=[],
            ),
        ),
    ),
)

DELETE_TOPICS_REQUEST = MessageSchema(
    "DeleteTopicsRequest",
    range(0, 7),
    4,
    Field("topics", array(Field("name", STRING, nullable_since=6), Field("topic_id", UUID)), since=6),
    Field("topic_names", ArrayOf(STRING), until=5),
    _TIMEOUT,
)
DELETE_TOPICS_RESPONSE = MessageSchema(
    "DeleteTopicsResponse",
    range(0, 7),
    4,
    Field("throttle_time_ms", INT32, since=1, default=0),
    Field(
        "responses",
        array(
            Field("name", STRING, nullable_since=6),
            Field("topic_id", UUID, since=6, default=bytes(16)),
            _ERROR_CODE,
            Field("error_message", STRING, since=5, nullable_since=5),
        ),
    ),
)

DELETE_RECORDS_REQUEST = MessageSchema(
    "DeleteRecordsRequest",
    range(0, 3),
    2,
    Field(
        "topics",
        array(_NAME, Field("partitions", array(Field("partition_index", INT32), Field("offset", INT64)))),
    ),
    _TIMEOUT,
)
DELETE_RECORDS_RESPONSE = MessageSchema(
    "DeleteRecordsResponse",
    range(0, 3),
    2,
    _THROTTLE,
    Field(
        "topics",
        array(
            _NAME,
            Field(
                "partitions",
                array(Field("partition_index", INT32), Field("low_watermark", INT64, default=-1), _ERROR_CODE),
            ),
        ),
    ),
)

# From version 4 on, a request may contain several transactions (KIP-890).
_TRANSACTION_TOPICS = array(_NAME, Field("partitions", ArrayOf(INT32)))
_TRANSACTION_RESULTS = array(
    _NAME, Field("results_by_partition", array(Field("partition_index", INT32), Field("partition_error_code", INT16)))
)
ADD_PARTITIONS_TO_TXN_REQUEST = MessageSchema(
    "AddPartitionsToTxnRequest",
    range(0, 6),
    3,
    Field(
        "transactions",
        array(
            Field("transactional_id", STRING),
            Field("producer_id", INT64),
            Field("producer_epoch", INT16),
            Field("verify_only", BOOL),
            Field("topics", _TRANSACTION_TOPICS),
        ),
        since=4,
    ),
    Field("v3_and_below_transactional_id", STRING, until=3),
    Field("v3_and_below_producer_id", INT64, until=3),
    Field("v3_and_below_producer_epoch", INT16, until=3),
    Field("v3_and_below_topics", _TRANSACTION_TOPICS, until=3),
)
ADD_PARTITIONS_TO_TXN_RESPONSE = MessageSchema(
    "AddPartitionsToTxnResponse",
    range(0, 6),
    3,
    _THROTTLE,
    Field("error_code", INT16, since=4, default=0),
    Field(
        "results_by_transaction",
        array(Field("transactional_id", STRING), Field("topic_results", _TRANSACTION_RESULTS)),
        since=4,
    ),
    Field("results_by_topic_v3_and_below", _TRANSACTION_RESULTS, until=3),
)

WRITE_TXN_MARKERS_REQUEST = MessageSchema(
    "WriteTxnMarkersRequest",
    range(0, 3),
    1,
    Field(
        "markers",
        array(
            Field("producer_id", INT64),
            Field("producer_epoch", INT16),
            Field("transaction_result", BOOL),
            Field("topics", array(_NAME, Field("partition_indexes", ArrayOf(INT32)))),
            Field("coordinator_epoch", INT32),
            Field("transaction_version", INT8, since=2),
        ),
    ),
)
WRITE_TXN_MARKERS_RESPONSE = MessageSchema(
    "WriteTxnMarkersResponse",
    range(0, 3),
    1,
    Field("markers", array(Field("producer_id", INT64), Field("topics", array(_NAME, _PARTITION_ERRORS)))),
)

_RESOURCE = (Field("resource_type", INT8), Field("resource_name", STRING))
_CONFIG_NAME, _CONFIG_VALUE = _NAME, Field("value", STRING, nullable_since=0)
_CONFIG_RESPONSES = Field("responses", array(_ERROR_CODE, _ERROR_MESSAGE, *_RESOURCE))
ALTER_CONFIGS_REQUEST = MessageSchema(
    "AlterConfigsRequest",
    range(0, 3),
    2,
    Field("resources", array(*_RESOURCE, Field("configs", array(_CONFIG_NAME, _CONFIG_VALUE)))),
    _VALIDATE_ONLY,
)
ALTER_CONFIGS_RESPONSE = MessageSchema("AlterConfigsResponse", range(0, 3), 2, _THROTTLE, _CONFIG_RESPONSES)
INCREMENTAL_ALTER_CONFIGS_REQUEST = MessageSchema(
    "IncrementalAlterConfigsRequest",
    range(0, 2),
    1,
    Field(
        "resources",
        array(*_RESOURCE, Field("configs", array(_CONFIG_NAME, Field("config_operation", INT8), _CONFIG_VALUE))),
    ),
    _VALIDATE_ONLY,
)
INCREMENTAL_ALTER_CONFIGS_RESPONSE = MessageSchema(
    "IncrementalAlterConfigsResponse", range(0, 2), 1, _THROTTLE, _CONFIG_RESPONSES
)

CREATE_PARTITIONS_REQUEST = MessageSchema(
    "CreatePartitionsRequest",
    range(0, 4),
    2,
    Field(
        "topics",
        array(
            _NAME,
            Field("count", INT32),
            Field("assignments", array(Field("broker_ids", ArrayOf(INT32))), nullable_since=0),
        ),
    ),
    _TIMEOUT,
    _VALIDATE_ONLY,
)
CREATE_PARTITIONS_RESPONSE = MessageSchema(
    "CreatePartitionsResponse",
    range(0, 4),
    2,
    _THROTTLE,
    Field("results", array(_NAME, _ERROR_CODE, _ERROR_MESSAGE)),
)

ALTER_PARTITION_REASSIGNMENTS_REQUEST = MessageSchema(
    "AlterPartitionReassignmentsRequest",
    range(0, 2),
    0,
    _TIMEOUT,
    Field("allow_replication_factor_change", BOOL, since=1),
    Field(
        "topics",
        array(
            _NAME,
            Field(
                "partitions",
                array(Field("partition_index", INT32), Field("replicas", ArrayOf(INT32), nullable_since=0)),
            ),
        ),
    ),
)
ALTER_PARTITION_REASSIGNMENTS_RESPONSE = MessageSchema(
    "AlterPartitionReassignmentsResponse",
    range(0, 2),
    0,
    _THROTTLE,
    Field("allow_replication_factor_change", BOOL, since=1, default=True),
    _ERROR_CODE,
    _ERROR_MESSAGE,
    Field(
        "responses",
        array(_NAME, Field("partitions", array(Field("partition_index", INT32), _ERROR_CODE, _ERROR_MESSAGE))),
    ),
)

ELECT_LEADERS_REQUEST = MessageSchema(
    "ElectLeadersRequest",
    range(0, 3),
    2,
    Field("election_type", INT8, since=1),
    Field("topic_partitions", array(Field("topic", STRING), Field("partitions", ArrayOf(INT32))), nullable_since=0),
    _TIMEOUT,
)
ELECT_LEADERS_RESPONSE = MessageSchema(
    "ElectLeadersResponse",
    range(0, 3),
    2,
    _THROTTLE,
    Field("error_code", INT16, since=1),
    Field(
        "replica_election_results",
        array(
            Field("topic", STRING),
            Field("partition_result", array(Field("partition_id", INT32), _ERROR_CODE, _ERROR_MESSAGE)),
        ),
    ),
)

ALTER_REPLICA_LOG_DIRS_REQUEST = MessageSchema(
    "AlterReplicaLogDirsRequest",
    range(0, 3),
    2,
    Field("dirs", array(Field("path", STRING), Field("topics", array(_NAME, Field("partitions", ArrayOf(INT32)))))),
)
ALTER_REPLICA_LOG_DIRS_RESPONSE = MessageSchema(
    "AlterReplicaLogDirsResponse",
    range(0, 3),
    2,
    _THROTTLE,
    Field("results", array(Field("topic_name", STRING), _PARTITION_ERRORS)),
)
