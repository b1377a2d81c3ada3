"""Rewrites broker addresses in responses, so that no client bypasses the proxy.

`sluicegate.protocol.api` declares these responses and the positions of addresses. Each function takes a complete
response (a frame without its size) and returns the client's frame in parts. Unchanged parts are not copied, because
copying large responses would delay other clients. Brokers without a listener are omitted from lists, so that a client
retries later.
"""

from collections.abc import Callable, Iterable

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.response_patches import NewAddress, with_addresses, with_coordinators, with_nodes
from sluicegate.protocol.response_walks import NodeAddress, addresses_in, topics_in
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.responses.topic_names import TopicNames

_NO_NODE = -1
# Larger responses are not searched for topics. The proxy requests topic ids when it needs them.
_MAX_BYTES_SEARCHED_FOR_TOPICS = 256 * 1024
# This size is enough for the endpoints of ten thousand brokers.
_MAX_TAIL_BYTES = 1 << 20


ClientId = Callable[[], str | None]
"""Returns the client id of a connection, or None if it has none."""


def no_client_id() -> None:
    """Return None, because the client is unknown."""


class ResponseRewriter:
    """Rewrites one cluster's responses so that they contain the proxy's addresses for its brokers."""

    def __init__(self, book: AddressBook, names: TopicNames) -> None:
        self._book = book
        self._names = names

    def rewrite(
        self,
        api_key: int,
        version: int,
        frame: bytearray,
        report: Callable[[set[int]], None] | None = None,
        client_id: ClientId = no_client_id,
    ) -> Parts:
        """Return the response with the proxy's addresses.

        `report` is called with the error codes of the topics or coordinators in the response. `client_id` returns the
        id of the client that receives the response. Raises MalformedMessage.
        """
        api = APIS[api_key]
        body_at = response_body_at(frame, api.response_header_version(version))
        found = addresses_in(api_key, version, frame, body_at)
        codes = found.codes
        if api_key == ApiKey.METADATA and len(frame) <= _MAX_BYTES_SEARCHED_FOR_TOPICS:
            topics, codes = topics_in(frame, version, body_at)
            self._names.learn(topics)
        if codes and report is not None:
            report(codes)
        if not found.nodes:
            return (frame,)
        flexible = api.is_flexible(version)
        if found.nodes[0].error_at < 0:
            return with_nodes(frame, found, self._new_addresses(found.nodes, client_id()), flexible)[0]
        existing = [node for node in found.nodes if not _is_missing(node)]
        if not existing:
            return (frame,)
        return with_coordinators(frame, existing, self._new_addresses(existing, client_id()), flexible)

    def produce_tail(self, tail: memoryview, client_id: str | None) -> bytes:
        """Rewrite the end of a client's Produce response v10+ with node endpoints (KIP-951).

        Raises MalformedMessage.
        """
        if len(tail) > _MAX_TAIL_BYTES:
            raise MalformedMessage(f"Produce response: the node endpoints after its topics have {len(tail)} bytes")
        named: set[int] = set()

        def address_of(node_id: int, host: str, port: int) -> NewAddress:
            named.add(node_id)
            return self._address_of(node_id, host, port)

        rewritten = with_addresses(bytes(tail), address_of)
        if client_id is not None and named:
            self._book.learn_view(client_id, named)
        return rewritten

    def _new_addresses(self, nodes: Iterable[NodeAddress], client_id: str | None) -> list[NewAddress]:
        """Return each node's address for clients. Equal nodes are looked up once."""
        found: dict[tuple[int, str, int], NewAddress] = {}
        addresses = []
        for node in nodes:
            key = (node.node_id, node.host, node.port)
            if key not in found:
                found[key] = self._address_of(*key)
            addresses.append(found[key])
        if client_id is not None:
            self._book.learn_view(client_id, {node_id for node_id, _, _ in found})
        return addresses

    def _address_of(self, node_id: int, host: str, port: int) -> NewAddress:
        ours = self._book.advertise(node_id, host, port)
        return None if ours is None else (ours.host, ours.port)


def _is_missing(node: NodeAddress) -> bool:
    """Return whether the broker reports that there is no coordinator."""
    return node.node_id == _NO_NODE and not node.host and node.port <= 0
