"""Where an answer names brokers' addresses, so that others can be put in their place and every other byte stays.

    Metadata 0 to 13, DescribeCluster 0 to 2: a list of brokers. FindCoordinator: one up to version 3, then a list.
    ShareFetch and ShareAcknowledge 1 and 2: node endpoints at the end; the same in tag 0 of Produce answers (KIP-951).

Held to the construct schemas by tests. What may be counted is bounded, so that no answer, however broken, takes more
than some ms. Compiled with the types in node_addresses.pxd where a C compiler was at hand.
"""

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS, Walk

MAX_NODES = 2000
"""Brokers in one list; no cluster has as many."""
MAX_COORDINATORS = 20_000
"""Coordinators in one answer: one for each group that an admin client asks about."""
_MAX_SHARE_ELEMENTS = 200_000

_INT16_BYTES = 2
_INT32_BYTES = 4
_INT64_BYTES = 8
_UUID_BYTES = 16
_METADATA_THROTTLE_SINCE = 3
_METADATA_RACK_SINCE = 1
_METADATA_FLEXIBLE_SINCE = APIS[ApiKey.METADATA].flexible_since
_ENDPOINT_TYPE_SINCE = 1
_FENCED_SINCE = 2
_COORDINATOR_MESSAGE_SINCE = 1
_COORDINATOR_FLEXIBLE_SINCE = APIS[ApiKey.FIND_COORDINATOR].flexible_since
_COORDINATOR_LIST_SINCE = 4
_ACKNOWLEDGE_LOCK_SINCE = 2


class NodeAddress:
    """One broker in an answer: its entry is data[start:end], its id stands at `node_at`.

    Its host (with the length) and port are data[host_at:behind_port]. `error_at` is where a coordinator's error code
    stands, -1 for brokers.
    """

    def __init__(self) -> None:
        self.node_id = 0
        self.host = ""
        self.port = 0
        self.start = 0
        self.node_at = 0
        self.host_at = 0
        self.behind_port = 0
        self.end = 0
        self.error_at = -1


class NodeList:
    """A list whose count is data[count_at:first_at]."""

    def __init__(self, count_at: int, first_at: int, nodes: list[NodeAddress]) -> None:
        self.count_at = count_at
        self.first_at = first_at
        self.nodes = nodes


def brokers_in_metadata(data: bytes | bytearray, version: int, body_at: int) -> NodeList:
    """The brokers in a Metadata answer; what follows them is not looked at. Raises MalformedMessage."""
    walk = _Walk()
    walk.begin(data, version, version >= _METADATA_FLEXIBLE_SINCE, body_at, MAX_NODES, MAX_TAGGED_FIELDS)
    try:
        if version >= _METADATA_THROTTLE_SINCE:
            walk.skip(_INT32_BYTES)
        return walk.nodes(version >= _METADATA_RACK_SINCE, 0)
    except MalformedMessage as error:
        raise MalformedMessage(f"Metadata answer v{version}: {error}") from error


def brokers_in_cluster(data: bytes | bytearray, version: int, body_at: int) -> NodeList:
    """The brokers in a DescribeCluster answer. Raises MalformedMessage."""
    walk = _Walk()
    walk.begin(data, version, True, body_at, MAX_NODES, MAX_TAGGED_FIELDS)
    try:
        walk.skip(_INT32_BYTES + _INT16_BYTES)  # throttle time, error code
        walk.skip_string()
        if version >= _ENDPOINT_TYPE_SINCE:
            walk.skip(1)
        walk.skip_string()  # the cluster's id
        walk.skip(_INT32_BYTES)  # the controller
        found = walk.nodes(True, 1 if version >= _FENCED_SINCE else 0)
        walk.skip(_INT32_BYTES)  # authorized operations
        walk.skip_tags()
        walk.expect_end()
    except MalformedMessage as error:
        raise MalformedMessage(f"DescribeCluster answer v{version}: {error}") from error
    return found


def coordinators(data: bytes | bytearray, version: int, body_at: int) -> list[NodeAddress]:
    """The coordinators in a FindCoordinator answer. Raises MalformedMessage."""
    walk = _Walk()
    walk.begin(data, version, version >= _COORDINATOR_FLEXIBLE_SINCE, body_at, MAX_COORDINATORS, MAX_TAGGED_FIELDS)
    found: list[NodeAddress] = []
    try:
        if version >= _COORDINATOR_MESSAGE_SINCE:
            walk.skip(_INT32_BYTES)  # throttle time
        if version < _COORDINATOR_LIST_SINCE:
            found.append(walk.only_coordinator())
        else:
            left = walk.count()
            while left > 0:
                found.append(walk.coordinator())
                left -= 1
        walk.skip_tags()
        walk.expect_end()
    except MalformedMessage as error:
        raise MalformedMessage(f"FindCoordinator answer v{version}: {error}") from error
    return found


def endpoints_of_share_fetch(data: bytes | bytearray, version: int, body_at: int) -> NodeList:
    """The node endpoints at the end of a ShareFetch answer. Raises MalformedMessage."""
    walk = _Walk()
    walk.begin(data, version, True, body_at, _MAX_SHARE_ELEMENTS, MAX_TAGGED_FIELDS)
    try:
        walk.skip(_INT32_BYTES + _INT16_BYTES)  # throttle time, error code
        walk.skip_string()
        walk.skip(_INT32_BYTES)  # the lock's timeout
        return walk.endpoints_behind_topics(True)
    except MalformedMessage as error:
        raise MalformedMessage(f"ShareFetch answer v{version}: {error}") from error


def endpoints_of_share_acknowledge(data: bytes | bytearray, version: int, body_at: int) -> NodeList:
    """The node endpoints at the end of a ShareAcknowledge answer. Raises MalformedMessage."""
    walk = _Walk()
    walk.begin(data, version, True, body_at, _MAX_SHARE_ELEMENTS, MAX_TAGGED_FIELDS)
    try:
        walk.skip(_INT32_BYTES + _INT16_BYTES)  # throttle time, error code
        walk.skip_string()
        if version >= _ACKNOWLEDGE_LOCK_SINCE:
            walk.skip(_INT32_BYTES)
        return walk.endpoints_behind_topics(False)
    except MalformedMessage as error:
        raise MalformedMessage(f"ShareAcknowledge answer v{version}: {error}") from error


def endpoints_in_tag(value: bytes | bytearray) -> NodeList:
    """The node endpoints in the value of a Produce answer's tag 0. Raises MalformedMessage."""
    walk = _Walk()
    walk.begin(value, 0, True, 0, MAX_NODES, MAX_TAGGED_FIELDS)
    found = walk.nodes(True, 0)
    walk.expect_end()
    return found


class _Walk(Walk):
    def nodes(self, has_rack: bool, fixed_bytes_behind: int) -> NodeList:
        count_at = self.position
        left = self.count()
        if left > MAX_NODES:
            raise MalformedMessage(f"{left} brokers, where {MAX_NODES} are the most")
        first_at = self.position
        found: list[NodeAddress] = []
        while left > 0:
            node = NodeAddress()
            node.start = self.position
            self.address(node)
            if has_rack:
                self.skip_string()
            self.skip(fixed_bytes_behind)
            self.skip_tags()
            node.end = self.position
            found.append(node)
            left -= 1
        return NodeList(count_at, first_at, found)

    def address(self, node: NodeAddress) -> None:
        node.node_at = self.position
        node.node_id = self.int32()
        node.host_at = self.position
        node.host = self.required_string()
        node.port = self.int32()
        node.behind_port = self.position

    def coordinator(self) -> NodeAddress:
        node = NodeAddress()
        node.start = self.position
        self.skip_string()  # the key
        self.address(node)
        node.error_at = self.position
        self.skip(_INT16_BYTES)
        self.skip_string()
        self.skip_tags()
        node.end = self.position
        return node

    def only_coordinator(self) -> NodeAddress:
        node = NodeAddress()
        node.start = node.error_at = self.position
        self.skip(_INT16_BYTES)
        if self.version >= _COORDINATOR_MESSAGE_SINCE:
            self.skip_string()
        self.address(node)
        node.end = self.position
        return node

    def endpoints_behind_topics(self, is_fetch: bool) -> NodeList:
        left = self.count()
        while left > 0:
            self.skip(_UUID_BYTES)
            partitions_left = self.count()
            while partitions_left > 0:
                self.skip_share_partition(is_fetch)
                partitions_left -= 1
            self.skip_tags()
            left -= 1
        found = self.nodes(True, 0)
        self.skip_tags()
        self.expect_end()
        return found

    def skip_share_partition(self, is_fetch: bool) -> None:
        self.skip(_INT32_BYTES + _INT16_BYTES)  # index, error code
        self.skip_string()
        if is_fetch:
            self.skip(_INT16_BYTES)  # the acknowledgement's error code
            self.skip_string()
        self.skip(_INT32_BYTES + _INT32_BYTES)  # the leader's id and epoch
        self.skip_tags()
        if is_fetch:
            self.skip_bytes()
            acquired_left = self.count()
            while acquired_left > 0:
                self.skip(_INT64_BYTES + _INT64_BYTES + _INT16_BYTES)
                self.skip_tags()
                acquired_left -= 1
        self.skip_tags()
