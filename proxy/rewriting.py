"""Answers that carry addresses or versions, rewritten so that no client ever bypasses the proxy.

Each function takes a gathered answer (a frame without its size) and returns the frame for the client. A broker
without a listener here is left out of lists, so that a client takes it for unavailable and asks again.
"""

from collections.abc import Callable
from typing import Any

from protocol.api import APIS, ApiKey
from protocol.errors import ErrorCode, MalformedMessage
from protocol.headers import build_response_header, read_correlation_id, response_body_at
from protocol.messages import (
    api_versions,
    describe_cluster,
    find_coordinator,
    metadata,
    share_acknowledge,
    share_fetch,
)
from protocol.messages.schema import MessageSchema
from protocol.produce_tail import with_addresses
from protocol.topic_ids import SINCE as TOPIC_IDS_SINCE
from protocol.topic_ids import topic_names_by_id
from proxy.addressing import AddressBook
from proxy.topic_names import TopicNames

_NO_NODE = -1
_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
_COORDINATOR_LIST_SINCE = 4
# Above this, ids are not picked out of an answer in passing but asked for when they are needed.
_MAX_BYTES_SEARCHED_FOR_IDS = 256 * 1024


class AnswerRewriter:
    """Rewrites answers with what one proxy knows of its cluster."""

    def __init__(self, book: AddressBook, names: TopicNames) -> None:
        self._book = book
        self._names = names
        self._rewriters: dict[int, Callable[[bytearray, int, int], bytes]] = {
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.DESCRIBE_CLUSTER: self._describe_cluster,
            ApiKey.SHARE_FETCH: self._share_fetch,
            ApiKey.SHARE_ACKNOWLEDGE: self._share_acknowledge,
        }

    def rewrite(self, api_key: int, version: int, frame: bytearray) -> bytes:
        """The answer to a request of `api_key` in `version`, addresses replaced. Raises MalformedMessage."""
        header_version = APIS[api_key].response_header_version(version)
        body_at = response_body_at(frame, header_version)
        return self._rewriters[api_key](frame, version, body_at)

    def produce_tail(self, tail: bytes) -> bytes:
        """The end of a Produce answer v10+ that names node endpoints (KIP-951). Raises MalformedMessage."""
        return with_addresses(tail, self._address_of)

    def _metadata(self, frame: bytearray, version: int, body_at: int) -> bytes:
        body = memoryview(frame)[body_at:]
        head, size = metadata.RESPONSE_HEAD.parse(body, version)
        head["brokers"] = self._offered(head["brokers"], "node_id")
        if version >= TOPIC_IDS_SINCE and len(frame) <= _MAX_BYTES_SEARCHED_FOR_IDS:
            self._names.learn(topic_names_by_id(body, size))
        return b"".join((frame[:body_at], metadata.RESPONSE_HEAD.build(head, version), body[size:]))

    def _find_coordinator(self, frame: bytearray, version: int, body_at: int) -> bytes:
        value = find_coordinator.RESPONSE.parse(memoryview(frame)[body_at:], version)
        coordinators = value["coordinators"] if version >= _COORDINATOR_LIST_SINCE else [value]
        for coordinator in coordinators:
            if coordinator["node_id"] != _NO_NODE:
                self._point_to_us(coordinator)
        return bytes(frame[:body_at]) + find_coordinator.RESPONSE.build(value, version)

    def _point_to_us(self, coordinator: dict[str, Any]) -> None:
        offered = self._book.advertise(coordinator["node_id"], coordinator["host"], coordinator["port"])
        if offered is None:
            unavailable = {"node_id": _NO_NODE, "host": "", "port": -1}
            coordinator.update(unavailable, error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            coordinator.update(host=offered.host, port=offered.port)

    def _describe_cluster(self, frame: bytearray, version: int, body_at: int) -> bytes:
        value = describe_cluster.RESPONSE.parse(memoryview(frame)[body_at:], version)
        value["brokers"] = self._offered(value["brokers"], "broker_id")
        return bytes(frame[:body_at]) + describe_cluster.RESPONSE.build(value, version)

    def _share_fetch(self, frame: bytearray, version: int, body_at: int) -> bytes:
        return self._node_endpoints(share_fetch.RESPONSE, frame, version, body_at)

    def _share_acknowledge(self, frame: bytearray, version: int, body_at: int) -> bytes:
        return self._node_endpoints(share_acknowledge.RESPONSE, frame, version, body_at)

    def _node_endpoints(self, schema: MessageSchema, frame: bytearray, version: int, body_at: int) -> bytes:
        value = schema.parse(memoryview(frame)[body_at:], version)
        if not value["node_endpoints"]:
            return bytes(frame)
        value["node_endpoints"] = self._offered(value["node_endpoints"], "node_id")
        return bytes(frame[:body_at]) + schema.build(value, version)

    def _address_of(self, node_id: int, host: str, port: int) -> tuple[str, int] | None:
        ours = self._book.advertise(node_id, host, port)
        return None if ours is None else (ours.host, ours.port)

    def _offered(self, brokers: list[dict[str, Any]], id_field: str) -> list[dict[str, Any]]:
        pairs = [(b, self._book.advertise(b[id_field], b["host"], b["port"])) for b in brokers]
        return [{**b, "host": ours.host, "port": ours.port} for b, ours in pairs if ours is not None]


def cut_down_versions(version: int, frame: bytearray) -> bytes:
    """An ApiVersions answer with only what this proxy understands. Raises MalformedMessage.

    A broker refuses a version that it does not know in version 0. librdkafka's mock cluster refuses it in no version's
    layout; its clients then ask again in version 0, so that is what such an answer is turned into.
    """
    body_at = response_body_at(frame, 0)
    body = memoryview(frame)[body_at:]
    if body[:2] == _UNSUPPORTED_VERSION:
        version = 0
        try:
            value = api_versions.RESPONSE.parse(body, version)
        except MalformedMessage:
            return unsupported_api_versions(read_correlation_id(frame), max_version=0)
    else:
        value = api_versions.RESPONSE.parse(body, version)
    kept = []
    for offered in value["api_keys"]:
        api = APIS.get(offered["api_key"])
        if api is not None and offered["min_version"] <= api.max_version:
            kept.append({**offered, "max_version": min(offered["max_version"], api.max_version)})
    value["api_keys"] = kept
    return bytes(frame[:body_at]) + api_versions.RESPONSE.build(value, version)


def unsupported_api_versions(correlation_id: int, max_version: int) -> bytes:
    """What a broker answers to an ApiVersions version it does not know: v0, with its range for this one key."""
    range_of_key = {"api_key": ApiKey.API_VERSIONS, "min_version": 0, "max_version": max_version}
    body = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": [range_of_key]}
    return build_response_header(correlation_id, 0) + api_versions.RESPONSE.build(body, 0)
