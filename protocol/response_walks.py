"""Walks over brokers' responses to find broker addresses, topic ids and error codes.

It does not build whole messages. `sluicegate.protocol.api` declares the layout of the responses with addresses; tag 0
of Produce responses (KIP-951) is walked here, too. Only the addresses are rewritten
(`sluicegate.protocol.response_patches`). Topic ids are read from Metadata responses. Error codes are at a response's
head, or at the positions in its layout. Tests compare all three with Kafka's definitions.

All counts are bounded, so even a broken response takes only a few ms. Compiled with the types in response_walks.pxd if
a C compiler is installed.
"""

from contextlib import suppress
from functools import cache
from struct import Struct

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.layout import NODE_ENDPOINTS, LayoutStep, Program, program_of
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS, Walk

_MAX_ELEMENTS = 200_000

# Plain ints, because reading an enum member takes longer.
_FIXED = int(LayoutStep.FIXED)
_STRING = int(LayoutStep.STRING)
_BYTES = int(LayoutStep.BYTES)
_TAGS = int(LayoutStep.TAGS)
_ARRAY = int(LayoutStep.ARRAY)
_NODES = int(LayoutStep.NODES)
_ADDRESS = int(LayoutStep.ADDRESS)
_ERROR = int(LayoutStep.ERROR)


class NodeAddress:
    """A broker in a response. Its entry is data[start:end], and its id begins at `node_at`.

    Its host (with the length) and port are data[host_at:port_end]. `error_at` is the position of the error code next to
    the address, or -1 if there is none.
    """

    def __init__(self) -> None:
        self.node_id = 0
        self.host = ""
        self.port = 0
        self.start = 0
        self.node_at = 0
        self.host_at = 0
        self.port_end = 0
        self.end = 0
        self.error_at = -1


class NodeList:
    """A list whose count is data[count_at:first_at]. `count_at` is -1 for a single broker, which has no count.

    `codes` contains the distinct error codes in the whole response, without 0.
    """

    def __init__(self, count_at: int, first_at: int, nodes: list[NodeAddress], codes: set[int]) -> None:
        self.count_at = count_at
        self.first_at = first_at
        self.nodes = nodes
        self.codes = codes


def addresses_in(api_key: int, version: int, data: bytes | bytearray, body_at: int) -> NodeList:
    """Return the brokers in a response of `api_key`. Its body begins at `body_at`. Raises MalformedMessage."""
    api = APIS[api_key]
    walk = ResponseWalk()
    walk.begin(data, version, api.is_flexible(version), body_at, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
    try:
        return walk.nodes_of(_program(api_key, version))
    except MalformedMessage as error:
        raise MalformedMessage(f"{api.name} response v{version}: {error}") from error


@cache
def _program(api_key: int, version: int) -> Program:
    return program_of(APIS[api_key].layout, version)


# The steps without those for tagged fields and for the end of a message.
_ENDPOINTS = program_of((NODE_ENDPOINTS,), 0)[:1]


def endpoints_in_tag(value: bytes | bytearray) -> NodeList:
    """Return the node endpoints in the value of tag 0 in a Produce response. Raises MalformedMessage."""
    walk = ResponseWalk()
    walk.begin(value, 0, True, 0, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
    found = walk.nodes_of(_ENDPOINTS)
    walk.expect_end()
    return found


class ResponseWalk(Walk):
    """A walk that follows a layout's steps. `codes` contains the distinct error codes so far, without 0."""

    def __init__(self) -> None:
        self.codes: set[int] = set()
        self.node = NodeAddress()
        self.listed = NodeList(-1, -1, [], self.codes)

    def nodes_of(self, program: Program) -> NodeList:
        self.run(program)
        if self.listed.count_at < 0:
            self.listed.nodes.append(self.node)
        return self.listed

    def run(self, program: Program) -> None:
        for step, size, inner in program:
            if step == _FIXED:
                self.skip(size)
            elif step == _STRING:
                self.skip_string()
            elif step == _BYTES:
                self.skip_bytes()
            elif step == _TAGS:
                self.skip_tags()
            elif step == _ARRAY:
                left = self.nullable_count()
                while left > 0:
                    self.run(inner)
                    left -= 1
            elif step == _NODES:
                self.nodes(size, inner)
            elif step == _ADDRESS:
                self.address(self.node)
            elif step == _ERROR:
                self.node.error_at = self.position
                self.error()
            else:
                self.expect_end()

    def nullable_count(self) -> int:
        """Read the number of items. It is 0 for null, such as a Fetch response's aborted transactions."""
        count = self.length(_INT32_BYTES)
        if count > self.elements_left:
            self.reject_count(count)
        if count < 0:
            return 0
        self.elements_left -= count
        return count

    def error(self) -> None:
        code = self.int16()
        if code != 0:
            self.codes.add(code)

    def nodes(self, most: int, inner: Program) -> None:
        count_at = self.position
        left = self.count()
        if left > most:
            raise MalformedMessage(f"{left} brokers, where {most} are the most")
        self.listed = NodeList(count_at, self.position, [], self.codes)
        while left > 0:
            node = NodeAddress()
            self.node = node
            node.start = self.position
            self.run(inner)
            node.end = self.position
            self.listed.nodes.append(node)
            left -= 1

    def address(self, node: NodeAddress) -> None:
        node.node_at = self.position
        node.node_id = self.int32()
        node.host_at = self.position
        node.host = self.required_string()
        node.port = self.int32()
        node.port_end = self.position


_BROKER_RACK_SINCE = 1
_CONTROLLER_SINCE = 1
_INTERNAL_SINCE = 1
_CLUSTER_ID_SINCE = 2
_THROTTLE_SINCE = 3
_OFFLINE_REPLICAS_SINCE = 5
_LEADER_EPOCH_SINCE = 7
_OPERATIONS_SINCE = 8
_FLEXIBLE_SINCE = APIS[ApiKey.METADATA].flexible_since
_TOPIC_ID_SINCE = 10
_INT32_BYTES = 4
_UUID_BYTES = 16
_NO_ID = bytes(_UUID_BYTES)
_PARTITION_BYTES = 2 + 4 + 4  # error code, index, leader
_MAX_ELEMENTS = 200_000


def topics_in(frame: bytes | bytearray, version: int, body_at: int) -> tuple[list[tuple[bytes | None, str]], set[int]]:
    """Read a Metadata response. Return its topics, and the distinct error codes of topics with an error.

    A topic is a pair (topic id or None, name). Only topics with a name and error code 0 are returned. Raises
    MalformedMessage if the response does not follow the schema up to the end of its topics.
    """
    walk = _MetadataWalk()
    walk.begin(frame, version, version >= _FLEXIBLE_SINCE, body_at, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
    try:
        return walk.topics(), walk.codes
    except MalformedMessage as error:
        raise MalformedMessage(f"Metadata response v{version}: {error}") from error


class _MetadataWalk(Walk):
    def topics(self) -> list[tuple[bytes | None, str]]:
        self.codes: set[int] = set()
        if self.version >= _THROTTLE_SINCE:
            self.skip(_INT32_BYTES)
        self.skip_brokers()
        if self.version >= _CLUSTER_ID_SINCE:
            self.skip_string()
        if self.version >= _CONTROLLER_SINCE:
            self.skip(_INT32_BYTES)
        found: list[tuple[bytes | None, str]] = []
        left = self.count()
        while left > 0:
            self.topic(found)
            left -= 1
        return found

    def skip_brokers(self) -> None:
        left = self.count()
        while left > 0:
            self.skip(_INT32_BYTES)
            self.skip_string()
            self.skip(_INT32_BYTES)
            if self.version >= _BROKER_RACK_SINCE:
                self.skip_string()
            self.skip_tags()
            left -= 1

    def topic(self, found: list[tuple[bytes | None, str]]) -> None:
        code = self.int16()
        topic_id = None
        if code != 0:
            self.codes.add(code)
            self.skip_string()
            if self.version >= _TOPIC_ID_SINCE:
                self.skip(_UUID_BYTES)
        else:
            name = self.string()
            if self.version >= _TOPIC_ID_SINCE:
                topic_id = self.bytes_of(_UUID_BYTES)
                if topic_id == _NO_ID:
                    topic_id = None
            if name:
                found.append((topic_id, name))
        if self.version >= _INTERNAL_SINCE:
            self.skip(1)
        self.skip_partitions()
        if self.version >= _OPERATIONS_SINCE:
            self.skip(_INT32_BYTES)
        self.skip_tags()

    def skip_partitions(self) -> None:
        left = self.count()
        while left > 0:
            self.skip(_PARTITION_BYTES)
            if self.version >= _LEADER_EPOCH_SINCE:
                self.skip(_INT32_BYTES)
            self.skip_int32s()  # replicas
            self.skip_int32s()  # in-sync replicas
            if self.version >= _OFFLINE_REPLICAS_SINCE:
                self.skip_int32s()
            self.skip_tags()
            left -= 1


_CODE = Struct(">h")
_THROTTLE_BYTES = 4


def code_at(api_key: int, version: int) -> int | None:
    """Return the position (bytes) of the error code in a response's body, or None if the API has no such code."""
    api = APIS.get(api_key)
    code = api.code if api is not None else None
    if code is None or not code.since <= version <= code.until:
        return None
    return _THROTTLE_BYTES if version >= code.throttled else 0


@cache
def codes_program(api_key: int, version: int) -> Program:
    """Return the steps to all error codes in a response. They are empty if its API does not declare them."""
    codes = APIS[api_key].codes
    return program_of(codes, version) if codes else ()


def codes_in(api_key: int, version: int, response: bytes | bytearray, body_at: int) -> tuple[int, ...]:
    """Return the distinct error codes in a response, or in its beginning if it is truncated; (0,) if there is no error.

    For an API with `codes`, these are the codes of partitions; for Metadata, those of topics; for FindCoordinator,
    those of coordinators.
    """
    api = APIS[api_key]
    if api_key == ApiKey.METADATA:
        with suppress(MalformedMessage):
            return tuple(sorted(topics_in(response, version, body_at)[1])) or (0,)
        return ()
    program, at = codes_program(api_key, version), code_at(api_key, version)
    if not program and at is None and api.layout:
        program = _program(api_key, version)
    if program:
        walk = ResponseWalk()
        walk.begin(response, version, api.is_flexible(version), body_at, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
        is_whole = False
        with suppress(MalformedMessage):
            walk.run(program)
            is_whole = True
        return tuple(sorted(walk.codes)) or ((0,) if is_whole else ())
    if at is None or body_at + at + _CODE.size > len(response):
        return ()
    return (_CODE.unpack_from(response, body_at + at)[0],)
