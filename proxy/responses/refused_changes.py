"""Rejects requests that change topics.

Requests that would change the proxies' own topics (`state`) are rejected as by a broker that denies authorization.

A request that names such a topic is rejected as a whole. A broker authorizes each topic separately, but a client with
permission to change these topics does not change others in the same request. The other topics get
OPERATION_NOT_ATTEMPTED. Brokers authorize some requests about several topics as an operation on the cluster. These
requests get CLUSTER_AUTHORIZATION_FAILED.

A mock cluster can change no topic, so every such request to it is rejected.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.messages import topic_changes as messages
from sluicegate.protocol.messages.schema import MessageSchema, Value

MOST_ELEMENTS = 2_500
"""The maximum number of topics, partitions and settings in a request that names one of these topics.

Parsing more of them would delay other clients.
"""
_TOPIC_RESOURCE = 2
_NO_ID = bytes(16)
_NO_TOPIC = ""
Topic = str | bytes
"""A topic's name or id."""
ErrorOf = Callable[[Topic], Value]
"""Returns the error code and the message for a topic of a rejected request."""


@dataclass(frozen=True, slots=True)
class TopicRefusal:
    """Why a request is rejected: the error for each topic, and the error for an operation on the cluster."""

    error_of: ErrorOf
    of_cluster: Value


@dataclass(frozen=True, slots=True)
class TopicChange:
    """How one API names topics, and how the proxy rejects a change of them.

    `topics` returns the topics that a request names. `rejection` returns the response that rejects the request.
    """

    request: MessageSchema
    response: MessageSchema
    topics: Callable[[Value], Iterable[Topic]]
    rejection: Callable[[Value, TopicRefusal], Value]


def refusal_of_own_topics(is_own: Callable[[Topic], bool]) -> TopicRefusal:
    """Create the refusal of a request that names a topic for which `is_own` is true."""
    message = "only sluicegate changes this topic: it stores the shared state of this cluster's proxies"
    own = {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "error_message": message}
    of_others = "the request also names a topic that only sluicegate changes"
    others = {"error_code": ErrorCode.OPERATION_NOT_ATTEMPTED, "error_message": of_others}
    of_cluster = {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "error_message": message}
    return TopicRefusal(lambda topic: own if is_own(topic) else others, of_cluster)


def refusal_of_all(message: str) -> TopicRefusal:
    """Create the refusal of every request, because the cluster does not support it."""
    error = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "error_message": message}
    return TopicRefusal(lambda _: error, error)


def _names(key: str) -> Callable[[Value], Iterable[Topic]]:
    return lambda request: (topic["name"] for topic in request[key] or ())


def _by_name(topics: str, results: str) -> Callable[[Value, TopicRefusal], Value]:
    """Return the rejection for an API whose response contains an error for each topic."""

    def rejection(request: Value, refusal: TopicRefusal) -> Value:
        named = [topic["name"] for topic in request[topics]]
        return {results: [{"name": name, **refusal.error_of(name)} for name in named]}

    return rejection


def _deleted(request: Value) -> list[Value]:
    """Return the topics to delete. Requests before version 6 contain only names."""
    if "topic_names" in request:
        return [{"name": name, "topic_id": _NO_ID} for name in request["topic_names"]]
    return list(request["topics"])


def _deleted_topics(request: Value) -> Iterator[Topic]:
    for topic in _deleted(request):
        yield topic["topic_id"] if topic["name"] is None else topic["name"]


def _delete_topics(request: Value, refusal: TopicRefusal) -> Value:
    named = zip(_deleted(request), _deleted_topics(request), strict=True)
    return {"responses": [{**topic, **refusal.error_of(key)} for topic, key in named]}


def _delete_records(request: Value, refusal: TopicRefusal) -> Value:
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    {"partition_index": partition["partition_index"], "error_code": _code_of(topic["name"], refusal)}
                    for partition in topic["partitions"]
                ],
            }
            for topic in request["topics"]
        ]
    }


def _transactions(request: Value) -> list[Value]:
    """Return a request's transactions. A request before version 4 contains exactly one."""
    if "transactions" in request:
        return list(request["transactions"])
    return [{"transactional_id": "", "topics": request["v3_and_below_topics"]}]


def _topics_of_transactions(request: Value) -> Iterator[Topic]:
    return (topic["name"] for transaction in _transactions(request) for topic in transaction["topics"])


def _code_of(topic: Topic, refusal: TopicRefusal) -> Any:
    return refusal.error_of(topic)["error_code"]


def _add_partitions(request: Value, refusal: TopicRefusal) -> Value:
    results = [
        {
            "transactional_id": transaction["transactional_id"],
            "topic_results": [
                {
                    "name": topic["name"],
                    "results_by_partition": [
                        {"partition_index": index, "partition_error_code": _code_of(topic["name"], refusal)}
                        for index in topic["partitions"]
                    ],
                }
                for topic in transaction["topics"]
            ],
        }
        for transaction in _transactions(request)
    ]
    return {"results_by_transaction": results, "results_by_topic_v3_and_below": results[0]["topic_results"]}


def _topics_of_markers(request: Value) -> Iterator[Topic]:
    return (topic["name"] for marker in request["markers"] for topic in marker["topics"])


def _write_markers(request: Value, refusal: TopicRefusal) -> Value:
    return {
        "markers": [
            {
                "producer_id": marker["producer_id"],
                "topics": [
                    {"name": topic["name"], "partitions": _failed(topic["partition_indexes"], refusal)}
                    for topic in marker["topics"]
                ],
            }
            for marker in request["markers"]
        ]
    }


def _failed(indexes: Iterable[int], refusal: TopicRefusal) -> list[Value]:
    return [{"partition_index": index, "error_code": refusal.of_cluster["error_code"]} for index in indexes]


def _topics_of_resources(request: Value) -> Iterator[Topic]:
    return (each["resource_name"] for each in request["resources"] if each["resource_type"] == _TOPIC_RESOURCE)


def _alter_configs(request: Value, refusal: TopicRefusal) -> Value:
    def error(resource: Value) -> Value:
        is_topic = resource["resource_type"] == _TOPIC_RESOURCE
        found = refusal.error_of(resource["resource_name"] if is_topic else _NO_TOPIC)
        return {"resource_type": resource["resource_type"], "resource_name": resource["resource_name"], **found}

    return {"responses": [error(each) for each in request["resources"]]}


def _reassign(_request: Value, refusal: TopicRefusal) -> Value:
    return {**refusal.of_cluster, "responses": []}


def _elected_topics(request: Value) -> Iterator[Topic]:
    return (each["topic"] for each in request["topic_partitions"] or ())


def _elect(request: Value, refusal: TopicRefusal) -> Value:
    results = [
        {
            "topic": each["topic"],
            "partition_result": [{"partition_id": index, **refusal.of_cluster} for index in each["partitions"]],
        }
        for each in request["topic_partitions"] or ()
    ]
    return {"error_code": refusal.of_cluster["error_code"], "replica_election_results": results}


def _moved(request: Value) -> Iterator[Value]:
    return (topic for folder in request["dirs"] for topic in folder["topics"])


def _topics_of_folders(request: Value) -> Iterator[Topic]:
    return (topic["name"] for topic in _moved(request))


def _move(request: Value, refusal: TopicRefusal) -> Value:
    moved = _moved(request)
    failed = [{"topic_name": each["name"], "partitions": _failed(each["partitions"], refusal)} for each in moved]
    return {"results": failed}


TOPIC_CHANGES: dict[str, TopicChange] = {
    api: TopicChange(request, response, topics, rejection)
    for api, request, response, topics, rejection in (
        (
            "CreateTopics",
            messages.CREATE_TOPICS_REQUEST,
            messages.CREATE_TOPICS_RESPONSE,
            _names("topics"),
            _by_name("topics", "topics"),
        ),
        (
            "DeleteTopics",
            messages.DELETE_TOPICS_REQUEST,
            messages.DELETE_TOPICS_RESPONSE,
            _deleted_topics,
            _delete_topics,
        ),
        (
            "DeleteRecords",
            messages.DELETE_RECORDS_REQUEST,
            messages.DELETE_RECORDS_RESPONSE,
            _names("topics"),
            _delete_records,
        ),
        (
            "AddPartitionsToTxn",
            messages.ADD_PARTITIONS_TO_TXN_REQUEST,
            messages.ADD_PARTITIONS_TO_TXN_RESPONSE,
            _topics_of_transactions,
            _add_partitions,
        ),
        (
            "WriteTxnMarkers",
            messages.WRITE_TXN_MARKERS_REQUEST,
            messages.WRITE_TXN_MARKERS_RESPONSE,
            _topics_of_markers,
            _write_markers,
        ),
        (
            "AlterConfigs",
            messages.ALTER_CONFIGS_REQUEST,
            messages.ALTER_CONFIGS_RESPONSE,
            _topics_of_resources,
            _alter_configs,
        ),
        (
            "IncrementalAlterConfigs",
            messages.INCREMENTAL_ALTER_CONFIGS_REQUEST,
            messages.INCREMENTAL_ALTER_CONFIGS_RESPONSE,
            _topics_of_resources,
            _alter_configs,
        ),
        (
            "CreatePartitions",
            messages.CREATE_PARTITIONS_REQUEST,
            messages.CREATE_PARTITIONS_RESPONSE,
            _names("topics"),
            _by_name("topics", "results"),
        ),
        (
            "AlterPartitionReassignments",
            messages.ALTER_PARTITION_REASSIGNMENTS_REQUEST,
            messages.ALTER_PARTITION_REASSIGNMENTS_RESPONSE,
            _names("topics"),
            _reassign,
        ),
        (
            "ElectLeaders",
            messages.ELECT_LEADERS_REQUEST,
            messages.ELECT_LEADERS_RESPONSE,
            _elected_topics,
            _elect,
        ),
        (
            "AlterReplicaLogDirs",
            messages.ALTER_REPLICA_LOG_DIRS_REQUEST,
            messages.ALTER_REPLICA_LOG_DIRS_RESPONSE,
            _topics_of_folders,
            _move,
        ),
    )
}
"""The changes by API name. Produce requests are rejected elsewhere (`sluicegate.proxy.session.produce.own_topics`)."""
