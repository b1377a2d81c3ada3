"""Where a response names brokers' addresses, so that others can be put in their place and every other byte stays.

`sluicegate.protocol.api` declares how such responses are laid out; tag 0 of Produce responses is walked here too
(KIP-951). Tests compare both with the construct schemas. What may be counted is bounded, so that no response, however
broken, takes more than some ms. Compiled with the types in node_addresses.pxd where a C compiler was at hand.
"""

from functools import cache

from sluicegate.protocol.api import APIS
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.layout import NODE_ENDPOINTS, Program, Step, program_of
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS, Walk

_MAX_ELEMENTS = 200_000

_INT16_BYTES = 2
# Named, because an enum's member is an object.
_FIXED = int(Step.FIXED)
_STRING = int(Step.STRING)
_BYTES = int(Step.BYTES)
_TAGS = int(Step.TAGS)
_ARRAY = int(Step.ARRAY)
_NODES = int(Step.NODES)
_ADDRESS = int(Step.ADDRESS)
_ERROR = int(Step.ERROR)


class NodeAddress:
    """One broker in a response: its entry is data[start:end], its id stands at `node_at`.

    Its host (with the length) and port are data[host_at:behind_port]. `error_at` is where the error code beside the
    address stands, -1 where there is none.
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
    """A list whose count is data[count_at:first_at]; a broker that stands by itself has no count."""

    def __init__(self, count_at: int, first_at: int, nodes: list[NodeAddress]) -> None:
        self.count_at = count_at
        self.first_at = first_at
        self.nodes = nodes


def addresses_in(api_key: int, version: int, data: bytes | bytearray, body_at: int) -> NodeList:
    """The brokers that a response of `api_key` names; its body begins at `body_at`. Raises MalformedMessage."""
    api = APIS[api_key]
    walk = _Walk()
    walk.begin(data, version, api.is_flexible(version), body_at, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
    try:
        return walk.found(_program(api_key, version))
    except MalformedMessage as error:
        raise MalformedMessage(f"{api.name} answer v{version}: {error}") from error


@cache
def _program(api_key: int, version: int) -> Program:
    return program_of(APIS[api_key].layout, version)


# Without the steps for tagged fields and the end of a message.
_ENDPOINTS = program_of((NODE_ENDPOINTS,), 0)[:1]


def endpoints_in_tag(value: bytes | bytearray) -> NodeList:
    """The node endpoints in the value of a Produce answer's tag 0. Raises MalformedMessage."""
    walk = _Walk()
    walk.begin(value, 0, True, 0, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
    found = walk.found(_ENDPOINTS)
    walk.expect_end()
    return found


class _Walk(Walk):
    def found(self, program: Program) -> NodeList:
        self.node = NodeAddress()
        self.listed = NodeList(-1, -1, [])
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
                left = self.count()
                while left > 0:
                    self.run(inner)
                    left -= 1
            elif step == _NODES:
                self.nodes(size, inner)
            elif step == _ADDRESS:
                self.address(self.node)
            elif step == _ERROR:
                self.node.error_at = self.position
                self.skip(_INT16_BYTES)
            else:
                self.expect_end()

    def nodes(self, most: int, inner: Program) -> None:
        count_at = self.position
        left = self.count()
        if left > most:
            raise MalformedMessage(f"{left} brokers, where {most} are the most")
        self.listed = NodeList(count_at, self.position, [])
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
        node.behind_port = self.position
