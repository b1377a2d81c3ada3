"""Answers that carry addresses or versions, rewritten so that no client ever bypasses the proxy.

Each function takes a gathered answer (a frame without its size) and returns the frame for the client, in parts: what
stays as it came is not copied, for copies of a large answer keep others waiting. A broker without a listener here is
left out of lists, so that a client takes it for unavailable and asks again.
"""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache, partial

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import build_response_header, response_body_at
from sluicegate.protocol.messages import api_versions
from sluicegate.protocol.node_addresses import (
    NodeAddress,
    NodeList,
    brokers_in_cluster,
    brokers_in_metadata,
    coordinators,
    endpoints_of_share_acknowledge,
    endpoints_of_share_fetch,
)
from sluicegate.protocol.produce_tail import with_addresses
from sluicegate.protocol.readdressing import Told, with_coordinators, with_nodes
from sluicegate.protocol.topic_ids import topics_told
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.responses.topic_names import TopicNames

_NO_NODE = -1
_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
# Above this, topics are not picked out of an answer in passing; ids are asked for when they are needed.
_MAX_BYTES_SEARCHED_FOR_TOPICS = 256 * 1024
# ApiVersions: brokers name some 60 APIs and a dozen features in half a KiB.
_MAX_VERSIONS_ELEMENTS = 2000
_MAX_VERSIONS_BYTES = 1 << 20
# Endpoints of some ten thousand brokers.
_MAX_TAIL_BYTES = 1 << 20
_MAX_BYTES_REMEMBERED = 4096
_ANSWERS_REMEMBERED = 64


class AnswerRewriter:
    """Rewrites answers with what one proxy knows of its cluster."""

    def __init__(self, book: AddressBook, names: TopicNames) -> None:
        self._book = book
        self._names = names
        self._rewriters: dict[int, Callable[[bytearray, int, int], Parts]] = {
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.DESCRIBE_CLUSTER: self._describe_cluster,
            ApiKey.SHARE_FETCH: self._share_fetch,
            ApiKey.SHARE_ACKNOWLEDGE: self._share_acknowledge,
        }
        self._of_kinds: dict[tuple[int, int], Callable[[bytearray], Parts]] = {}

    def rewriting(self, api_key: int, version: int) -> Callable[[bytearray], Parts]:
        """`rewrite` for such answers: one object for all of a kind, because a client may let a thousand wait."""
        kind = api_key, version
        found = self._of_kinds.get(kind)
        if found is None:
            found = self._of_kinds[kind] = partial(self.rewrite, api_key, version)
        return found

    def rewrite(self, api_key: int, version: int, frame: bytearray) -> Parts:
        """The answer to a request of `api_key` in `version`, addresses replaced. Raises MalformedMessage."""
        header_version = APIS[api_key].response_header_version(version)
        body_at = response_body_at(frame, header_version)
        return self._rewriters[api_key](frame, version, body_at)

    def produce_tail(self, tail: memoryview) -> bytes:
        """The end of a Produce answer v10+ that names node endpoints (KIP-951). Raises MalformedMessage."""
        if len(tail) > _MAX_TAIL_BYTES:
            raise MalformedMessage(f"Produce answer: {len(tail)} bytes behind its topics, where brokers have endpoints")
        return with_addresses(bytes(tail), self._address_of)

    def _metadata(self, frame: bytearray, version: int, body_at: int) -> Parts:
        found = brokers_in_metadata(frame, version, body_at)
        if len(frame) <= _MAX_BYTES_SEARCHED_FOR_TOPICS:
            self._names.learn(topics_told(frame, version, body_at))
        return self._readdressed(frame, found, APIS[ApiKey.METADATA].is_flexible(version))

    def _find_coordinator(self, frame: bytearray, version: int, body_at: int) -> Parts:
        found = [node for node in coordinators(frame, version, body_at) if not _is_nowhere(node)]
        if not found:
            return (frame,)
        flexible = APIS[ApiKey.FIND_COORDINATOR].is_flexible(version)
        return with_coordinators(frame, found, self._told(found), flexible)

    def _describe_cluster(self, frame: bytearray, version: int, body_at: int) -> Parts:
        return self._readdressed(frame, brokers_in_cluster(frame, version, body_at), flexible=True)

    def _share_fetch(self, frame: bytearray, version: int, body_at: int) -> Parts:
        found = endpoints_of_share_fetch(frame, version, body_at)
        return self._readdressed(frame, found, flexible=True) if found.nodes else (frame,)

    def _share_acknowledge(self, frame: bytearray, version: int, body_at: int) -> Parts:
        found = endpoints_of_share_acknowledge(frame, version, body_at)
        return self._readdressed(frame, found, flexible=True) if found.nodes else (frame,)

    def _readdressed(self, frame: bytearray, found: NodeList, flexible: bool) -> Parts:
        return with_nodes(frame, found, self._told(found.nodes), flexible)[0]

    def _told(self, nodes: Iterable[NodeAddress]) -> list[Told]:
        """For each node what clients are told; the book is asked once for each that is the same."""
        told: dict[tuple[int, str, int], Told] = {}
        answers = []
        for node in nodes:
            key = (node.node_id, node.host, node.port)
            if key not in told:
                told[key] = self._address_of(*key)
            answers.append(told[key])
        return answers

    def _address_of(self, node_id: int, host: str, port: int) -> Told:
        ours = self._book.advertise(node_id, host, port)
        return None if ours is None else (ours.host, ours.port)


def _is_nowhere(node: NodeAddress) -> bool:
    """Whether the broker itself says that there is no coordinator."""
    return node.node_id == _NO_NODE and not node.host and node.port <= 0


def cut_down_versions(version: int, frame: bytearray) -> Parts:
    """An ApiVersions answer with only what this proxy understands. Raises MalformedMessage.

    All brokers of a cluster say the same to each connection, so the last answers' bytes are remembered.
    """
    if len(frame) > _MAX_VERSIONS_BYTES:
        raise MalformedMessage(f"ApiVersions answer v{version}: {len(frame)} bytes, where brokers need a thousand")
    body_at = response_body_at(frame, 0)
    body = bytes(memoryview(frame)[body_at:])
    cut_down = _remembered_versions if len(body) <= _MAX_BYTES_REMEMBERED else _cut_down_body
    return frame[:body_at], cut_down(version, body)


def _cut_down_body(version: int, body: bytes) -> bytes:
    """The same for an answer's body.

    A broker refuses a version that it does not know in version 0. librdkafka's mock cluster refuses it in no version's
    layout; its clients then ask again in version 0, so that is what such an answer is turned into.
    """
    if body[:2] == _UNSUPPORTED_VERSION:
        version = 0
        try:
            value = api_versions.RESPONSE.parse(body, version, _MAX_VERSIONS_ELEMENTS)
        except MalformedMessage:
            return _unsupported_body(max_version=0)
    else:
        value = api_versions.RESPONSE.parse(body, version, _MAX_VERSIONS_ELEMENTS)
    kept = []
    for offered in value["api_keys"]:
        api = APIS.get(offered["api_key"])
        if api is not None and offered["min_version"] <= api.max_version:
            kept.append({**offered, "max_version": min(offered["max_version"], api.max_version)})
    value["api_keys"] = kept
    return api_versions.RESPONSE.build(value, version)


_remembered_versions = lru_cache(maxsize=_ANSWERS_REMEMBERED)(_cut_down_body)


def unsupported_api_versions(correlation_id: int, max_version: int) -> bytes:
    """What a broker answers to an ApiVersions version it does not know: v0, with its range for this one key."""
    return build_response_header(correlation_id, 0) + _unsupported_body(max_version)


@cache
def _unsupported_body(max_version: int) -> bytes:
    range_of_key = {"api_key": ApiKey.API_VERSIONS, "min_version": 0, "max_version": max_version}
    body = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": [range_of_key]}
    return api_versions.RESPONSE.build(body, 0)
