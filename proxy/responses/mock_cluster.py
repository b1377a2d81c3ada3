"""Adds what librdkafka's mock cluster lacks although producers' tests use it.

Clients do not send a request that a broker does not offer, and the error that they raise gives no advice. So the proxy
offers these APIs to a mock cluster's clients, and rejects each request with a message.

The mock cluster (2.16) names node 0 as its controller. Node 0 does not exist, so admin clients would wait for it.

The mock cluster also offers versions with which only librdkafka's own clients work, and APIs that can end its process.
The proxy does not offer these.
"""

from collections.abc import Callable
from struct import Struct

from sluicegate.protocol.api import APIS, Api, ApiKey
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.protocol.response_walks import addresses_in
from sluicegate.protocol.strings import encode_string
from sluicegate.protocol.walk import Walk
from sluicegate.proxy.responses.api_versions import cut_down_versions
from sluicegate.proxy.responses.refused_changes import MOST_ELEMENTS, TOPIC_CHANGES, TopicRefusal, refusal_of_all
from sluicegate.proxy.responses.rewriting import ClientId, ResponseRewriter, no_client_id

_BY_NAME = {api.name: api for api in APIS.values()}


def _describe_nothing(request: Value, refusal: TopicRefusal) -> Value:
    return {
        "throttle_time_ms": 0,
        "results": [
            {
                "resource_type": each["resource_type"],
                "resource_name": each["resource_name"],
                "configs": [],
                **refusal.error_of(each["resource_name"]),
            }
            for each in request["resources"]
        ],
    }


_REJECTIONS = {
    name: (TOPIC_CHANGES[name].request, TOPIC_CHANGES[name].response, TOPIC_CHANGES[name].rejection)
    for name in (
        "CreateTopics",
        "DeleteTopics",
        "DeleteRecords",
        "CreatePartitions",
        "AlterConfigs",
        "IncrementalAlterConfigs",
    )
} | {"DescribeConfigs": (DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE, _describe_nothing)}
# The mock cluster supports these groups only for librdkafka. A heartbeat of Java's consumer fails an assertion, which
# ends the process (validate_subscription, 2.16).
_HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat")
REJECTED_APIS = tuple(_BY_NAME[name] for name in (*_REJECTIONS, *_HEARTBEATS))
_WORKING_VERSIONS = {
    _BY_NAME[name].key: version
    for name, version in (
        ("Metadata", 8),  # a later response has one byte too many, which sarama rejects
        ("OffsetFetch", 1),  # an array of topics that is null in a later request is null in the response too
        ("JoinGroup", 5),  # the mock cluster closes the connection after a later request from Java's consumer
        ("Heartbeat", 3),
        ("LeaveGroup", 2),  # a later response lacks the members
        ("SyncGroup", 3),
    )
}
# Acknowledging requires a group of the rejected kind, and the proxy has no use for telemetry here.
_NOT_OFFERED = frozenset(
    _BY_NAME[name].key for name in ("GetTelemetrySubscriptions", "PushTelemetry", "ShareFetch", "ShareAcknowledge")
)
_NONE, _UNSUPPORTED = (code.to_bytes(2, "big") for code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION))
_MOST_APIS = 1000
_CONTROLLER_SINCE, _CLUSTER_ID_SINCE = 1, 2
_INT32 = Struct(">i")


def versions_with_rejected_apis(version: int, frame: bytearray) -> Parts:
    """Return a mock cluster's ApiVersions response with the APIs that the proxy rejects, and without those that fail.

    Raises MalformedMessage.
    """
    head, body = cut_down_versions(version, frame)
    if bytes(body[:2]) != _NONE:  # the version is unknown, and the client retries with an older version
        return head, body
    value = API_VERSIONS_RESPONSE.parse(bytes(body), version, _MOST_APIS)
    offered = {each["api_key"] for each in value["api_keys"]}
    value["api_keys"] = [
        {**each, "max_version": min(each["max_version"], _WORKING_VERSIONS.get(each["api_key"], each["max_version"]))}
        for each in value["api_keys"]
        if each["api_key"] not in _NOT_OFFERED
    ]
    value["api_keys"] += [
        {"api_key": api.key, "min_version": 0, "max_version": api.max_version}
        for api in REJECTED_APIS
        if api.key not in offered
    ]
    return head, API_VERSIONS_RESPONSE.build(value, version)


def rejection_of(api: Api, version: int, body: memoryview, message: str) -> bytes:
    """Return the body of the response to a request for one of `REJECTED_APIS`. Raises MalformedMessage."""
    if api.name in _HEARTBEATS:
        member = b"\0" + bytes(8) + b"\xff"  # no id, epoch 0, interval 0, no assignment
        return bytes(4) + _UNSUPPORTED + encode_string(message, flexible=True) + member + b"\0"
    request, response, rejection = _REJECTIONS[api.name]
    return response.build(rejection(request.parse(body, version, MOST_ELEMENTS), refusal_of_all(message)), version)


class MockClusterRewriter(ResponseRewriter):
    """A rewriter that also makes a mock cluster's first broker its controller."""

    def rewrite(
        self,
        api_key: int,
        version: int,
        frame: bytearray,
        report: Callable[[set[int]], None] | None = None,
        client_id: ClientId = no_client_id,
    ) -> Parts:
        """Return the response with the proxy's addresses. The arguments are those of ResponseRewriter."""
        if api_key == ApiKey.METADATA and version >= _CONTROLLER_SINCE:
            _name_controller(version, frame)
        return super().rewrite(api_key, version, frame, report, client_id)


def _name_controller(version: int, frame: bytearray) -> None:
    """Make the first broker the controller in a Metadata response. Raises MalformedMessage."""
    api = APIS[ApiKey.METADATA]
    nodes = addresses_in(api.key, version, frame, response_body_at(frame, api.response_header_version(version))).nodes
    if nodes:
        walk = Walk()
        walk.begin(frame, version, api.is_flexible(version), nodes[-1].end, 0, 0)
        if version >= _CLUSTER_ID_SINCE:
            walk.string()
        at = walk.position
        walk.skip(_INT32.size)
        _INT32.pack_into(frame, at, nodes[0].node_id)
