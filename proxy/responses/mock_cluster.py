"""What librdkafka's mock cluster lacks, and tests of producers use nevertheless.

Clients do not send a request that a broker does not offer, and their own error gives no advice. So the proxy offers
these APIs to the clients of a mock cluster, and rejects each request with a message.

The mock cluster names node 0 as its controller (2.16), which does not exist, so admin clients would wait for it.
"""

from collections.abc import Callable
from struct import Struct

from sluicegate.protocol.api import APIS, ApiHandling, ApiKey
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.protocol.response_walks import addresses_in
from sluicegate.protocol.walk import Walk
from sluicegate.proxy.responses.api_versions import cut_down_versions
from sluicegate.proxy.responses.rewriting import ClientId, ResponseRewriter, no_client_id

REJECTED_APIS = tuple(
    api
    for api in APIS.values()
    if api.handling is ApiHandling.GUARD
    and api.name
    in ("CreateTopics", "DeleteTopics", "DeleteRecords", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs")
)
_NONE = ErrorCode.NONE.to_bytes(2, "big")
_MOST_ELEMENTS = 1000
_CONTROLLER_SINCE, _CLUSTER_ID_SINCE = 1, 2
_INT32 = Struct(">i")


def versions_with_rejected_apis(version: int, frame: bytearray) -> Parts:
    """Return a mock cluster's ApiVersions response with the APIs that the proxy rejects.

    Raises MalformedMessage.
    """
    head, body = cut_down_versions(version, frame)
    if bytes(body[:2]) != _NONE:  # the version is unknown, and the client asks again in an older version
        return head, body
    value = API_VERSIONS_RESPONSE.parse(bytes(body), version, _MOST_ELEMENTS)
    offered = {each["api_key"] for each in value["api_keys"]}
    value["api_keys"] += [
        {"api_key": api.key, "min_version": 0, "max_version": api.max_version}
        for api in REJECTED_APIS
        if api.key not in offered
    ]
    return head, API_VERSIONS_RESPONSE.build(value, version)


class MockClusterRewriter(ResponseRewriter):
    """Also makes the first broker of a mock cluster its controller."""

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
    """Write the first broker as the controller into a Metadata response. Raises MalformedMessage."""
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
