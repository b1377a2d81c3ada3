"""Builds a request for each API that changes a topic, and parses the error codes in a response."""

from collections.abc import Callable, Iterator

from sluicegate.protocol.messages import topic_changes as messages
from sluicegate.protocol.messages.schema import MessageSchema, Value

NO_ID = bytes(16)
_TIMEOUT = {"timeout_ms": 10_000}


def resources(*topics: str) -> Value:
    setting = {"name": "retention.ms", "value": "1000", "config_operation": 0}
    named = [{"resource_type": 2, "resource_name": topic, "configs": [setting]} for topic in topics]
    return {"resources": named, "validate_only": False}


def without_operation(*topics: str) -> Value:
    value = resources(*topics)
    for each in value["resources"]:
        each["configs"] = [{"name": "retention.ms", "value": "1000"}]
    return value


def created(*topics: str) -> Value:
    plain = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return {"topics": [{"name": topic, **plain} for topic in topics], "validate_only": False, **_TIMEOUT}


def deleted(*topics: str) -> Value:
    named = [{"name": topic, "topic_id": NO_ID} for topic in topics]
    return {"topics": named, "topic_names": list(topics), **_TIMEOUT}


def delete_records_body(*topics: str) -> Value:
    partitions = [{"partition_index": 0, "offset": -1}]
    return {"topics": [{"name": topic, "partitions": partitions} for topic in topics], **_TIMEOUT}


def in_transaction(*topics: str) -> Value:
    named = [{"name": topic, "partitions": [0]} for topic in topics]
    one = {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0, "verify_only": False, "topics": named}
    old = {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0, "topics": named}
    return {"transactions": [one], **{f"v3_and_below_{key}": value for key, value in old.items()}}


def write_markers_body(*topics: str) -> Value:
    named = [{"name": topic, "partition_indexes": [0]} for topic in topics]
    marker = {"producer_id": 1, "producer_epoch": 0, "transaction_result": True, "topics": named}
    return {"markers": [{**marker, "coordinator_epoch": 0, "transaction_version": 0}]}


def create_partitions_body(*topics: str) -> Value:
    named = [{"name": topic, "count": 5, "assignments": None} for topic in topics]
    return {"topics": named, "validate_only": False, **_TIMEOUT}


def reassignments_body(*topics: str) -> Value:
    partitions = [{"partition_index": 0, "replicas": [1]}]
    named = [{"name": topic, "partitions": partitions} for topic in topics]
    return {"topics": named, "allow_replication_factor_change": True, **_TIMEOUT}


def elect_leaders_body(*topics: str) -> Value:
    return {
        "election_type": 0,
        "topic_partitions": [{"topic": each, "partitions": [0]} for each in topics],
        **_TIMEOUT,
    }


def moved(*topics: str) -> Value:
    return {"dirs": [{"path": "/nowhere", "topics": [{"name": topic, "partitions": [0]} for topic in topics]}]}


REQUESTS: dict[str, Callable[..., Value]] = {
    "CreateTopics": created,
    "DeleteTopics": deleted,
    "DeleteRecords": delete_records_body,
    "AddPartitionsToTxn": in_transaction,
    "WriteTxnMarkers": write_markers_body,
    "AlterConfigs": without_operation,
    "IncrementalAlterConfigs": resources,
    "CreatePartitions": create_partitions_body,
    "AlterPartitionReassignments": reassignments_body,
    "ElectLeaders": elect_leaders_body,
    "AlterReplicaLogDirs": moved,
}
SCHEMAS = {value.name: value for value in vars(messages).values() if isinstance(value, MessageSchema)}


def codes_in(value: object) -> Iterator[int]:
    """Yield the error codes anywhere in a parsed response, apart from those of a topic's settings."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in ("error_code", "partition_error_code"):
                yield each
            yield from codes_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from codes_in(each)
