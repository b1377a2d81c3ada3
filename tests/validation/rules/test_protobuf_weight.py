"""Protobuf that its reader would make too much of is refused before it is read; what is merely large is not."""

from collections.abc import Callable
from functools import cache
from time import thread_time

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from sluicegate.validation.rules.content import Content
from sluicegate.validation.rules.protobuf_schema import indexed_protobuf_content, protobuf_content
from sluicegate.validation.rules.schema_file import FollowsSchema
from sluicegate.validation.rules.side import Side
from tests.validation.rules.records import record

# Some 15 ms on a machine that does nothing else.
_MOST_READING_SECONDS = 0.2
_FIRST_MESSAGE = b"\x00"


def descriptor_set() -> bytes:
    """message Node {nodes = 1, numbers = 2, texts = 3, the map counts = 4, weights (packed doubles) = 5, blob = 6}."""
    file = FileDescriptorProto(name="node.proto", package="p", syntax="proto3")
    node = file.message_type.add(name="Node")
    entry = node.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    kinds = FieldDescriptorProto
    add(entry, "key", 1, kinds.TYPE_INT32, kinds.LABEL_OPTIONAL)
    add(entry, "value", 2, kinds.TYPE_INT32, kinds.LABEL_OPTIONAL)
    add(node, "nodes", 1, kinds.TYPE_MESSAGE, kinds.LABEL_REPEATED, ".p.Node")
    add(node, "numbers", 2, kinds.TYPE_INT64, kinds.LABEL_REPEATED)
    add(node, "texts", 3, kinds.TYPE_STRING, kinds.LABEL_REPEATED)
    add(node, "counts", 4, kinds.TYPE_MESSAGE, kinds.LABEL_REPEATED, ".p.Node.CountsEntry")
    add(node, "weights", 5, kinds.TYPE_DOUBLE, kinds.LABEL_REPEATED)
    add(node, "blob", 6, kinds.TYPE_BYTES, kinds.LABEL_OPTIONAL)
    return FileDescriptorSet(file=[file]).SerializeToString()


def add(to: DescriptorProto, name: str, number: int, kind: int, label: int, type_name: str | None = None) -> None:
    field = to.field.add(name=name, number=number, type_name=type_name)
    field.type, field.label = kind, label


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def held(number: int, inside: bytes) -> bytes:
    """A field that has a length."""
    return varint(number << 3 | 2) + varint(len(inside)) + inside


def deep(size: int) -> bytes:
    inside = b""
    for _ in range(90):
        inside = held(1, inside)
    return inside * (size // len(inside))


@cache
def entries(count: int) -> bytes:
    return b"".join(held(4, b"\x08" + varint(i)) for i in range(count))


# Made where they are used: every process that runs tests reads all files.
HEAVY: dict[str, Callable[[], bytes]] = {
    "a map's entries": lambda: entries(1_000_000),
    "empty messages": lambda: b"\x0a\x00" * 4_000_000,
    "empty messages, one level down": lambda: held(1, b"\x0a\x00" * 4_000_000),
    "deep messages": lambda: deep(8_000_000),
    "single numbers": lambda: b"\x10\x01" * 4_000_000,
    "packed numbers": lambda: held(2, b"\x01" * 9_000_000),
    "packed numbers, one by one": lambda: held(2, b"\x01") * 2_000_000,
    "empty texts": lambda: b"\x1a\x00" * 4_000_000,
    "fields it does not know": lambda: b"\x78\x01" * 4_000_000,
    "groups it does not know": lambda: b"\x7b\x7c" * 4_000_000,
}
LIGHT: dict[str, Callable[[], bytes]] = {
    "a picture": lambda: held(6, bytes(8_000_000)),
    "packed doubles": lambda: held(5, bytes(8_000_000)),
    "texts": lambda: held(3, b"x" * 100) * 80_000,
    "packed numbers": lambda: held(2, b"\x01" * 3_000_000),
    "messages of one text": lambda: held(1, held(3, b"x" * 20)) * 120_000,
    "a map": lambda: entries(40_000),
    "empty messages": lambda: b"\x0a\x00" * 160_000,
}


@pytest.fixture(scope="module")
def node() -> Content:
    return protobuf_content(descriptor_set(), "p.Node")


@pytest.mark.parametrize("kind", HEAVY)
def test_what_weighs_too_much_is_refused_in_words(kind: str, node: Content) -> None:
    words = FollowsSchema(Side.VALUE, node).complaint(record(HEAVY[kind]()))

    assert "is Protobuf of more fields than rules read (500,000" in str(words)


@pytest.mark.parametrize("kind", LIGHT)
def test_what_does_not_is_read_in_a_moment(kind: str, node: Content) -> None:
    value = LIGHT[kind]()
    assert node.fault(value) is None

    pool = DescriptorPool()
    pool.Add(FileDescriptorSet.FromString(descriptor_set()).file[0])
    read = GetMessageClass(pool.FindMessageTypeByName("p.Node")).FromString
    assert min(seconds_of(read, value) for _ in range(3)) < _MOST_READING_SECONDS


def seconds_of(read: Callable[[bytes], object], data: bytes) -> float:
    """In which nobody else has the interpreter."""
    began = thread_time()
    read(data)
    return thread_time() - began


def test_behind_a_registry_s_path_too() -> None:
    content = indexed_protobuf_content(descriptor_set())

    assert "more fields than rules read" in str(content.fault(_FIRST_MESSAGE + HEAVY["a map's entries"]()))


@pytest.mark.parametrize(
    "damaged",
    [HEAVY["empty messages"]()[:-1], held(6, bytes(2_000_000))[:-1], b"\x0f" * 2_000_000, b"\xff" * 2_000_000],
)
def test_what_is_damaged_is_called_so_or_too_heavy(damaged: bytes, node: Content) -> None:
    words = str(node.fault(damaged))

    assert "cannot be read" in words or "more fields" in words
