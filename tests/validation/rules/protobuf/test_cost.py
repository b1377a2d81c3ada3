"""The bound on a Protobuf schema's steps is never below the reader's cost, and is low for ordinary messages."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from random import Random
from time import thread_time

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.protobuf.indexed_schema import indexed_protobuf_content
from sluicegate.validation.rules.protobuf.schema import protobuf_content
from sluicegate.validation.rules.rule import INLINE_STEPS, StepBudget
from sluicegate.validation.rules.schemas.content import Content
from tests.validation.rules.steps import steps_of

_STEP_SECONDS = 100e-9
# Without compiled code, the reader takes about fifty times as long. Reading a message includes this step.
_MOST_COUNTING_SECONDS = 0.04 if is_compiled() else 2.0
_SLACK_SECONDS = 1e-3 if is_compiled() else _MOST_COUNTING_SECONDS
_MOST_EXPLAINING_SECONDS = 0.02 if is_compiled() else 1.0
_FIRST_MESSAGE = b"\x00"


def descriptor_set() -> bytes:
    """Return a schema: message Node {nodes = 1, numbers = 2, texts = 3, the map counts = 4, weights (packed doubles) =
    5, blob = 6}."""
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


def length_delimited(number: int, inside: bytes) -> bytes:
    """Return a length-delimited field."""
    return varint(number << 3 | 2) + varint(len(inside)) + inside


def nested_messages(size: int) -> bytes:
    inside = b""
    for _ in range(90):
        inside = length_delimited(1, inside)
    return inside * (size // len(inside))


@cache
def map_entries(count: int) -> bytes:
    return b"".join(length_delimited(4, b"\x08" + varint(i)) for i in range(count))


# Built when they are used, because every test process imports all files.
MANY: dict[str, Callable[[], bytes]] = {
    "a map's entries": lambda: map_entries(200_000),
    "empty messages": lambda: b"\x0a\x00" * 600_000,
    "empty messages, one level down": lambda: length_delimited(1, b"\x0a\x00" * 600_000),
    "deep messages": lambda: nested_messages(2_000_000),
    "single numbers": lambda: b"\x10\x01" * 600_000,
    "packed numbers": lambda: length_delimited(2, b"\x01" * 2_000_000),
    "packed numbers, one by one": lambda: length_delimited(2, b"\x01") * 800_000,
    "empty texts": lambda: b"\x1a\x00" * 600_000,
    "fields it does not know": lambda: b"\x78\x01" * 600_000,
    "groups it does not know": lambda: b"\x7b\x7c" * 600_000,
}
FEW: dict[str, Callable[[], bytes]] = {
    "a picture": lambda: length_delimited(6, bytes(900_000)),
    "packed doubles": lambda: length_delimited(5, bytes(900_000)),
    "texts": lambda: length_delimited(3, b"x" * 100) * 8_000,
    "packed numbers": lambda: length_delimited(2, b"\x01" * 300_000),
    "messages of one text": lambda: length_delimited(1, length_delimited(3, b"x" * 20)) * 12_000,
    "a map": lambda: map_entries(10_000),
    "empty messages": lambda: b"\x0a\x00" * 20_000,
}


@pytest.fixture(scope="module")
def node_content() -> Content:
    return protobuf_content(descriptor_set(), "p.Node")


def seconds_of(content: Content, data: bytes) -> float:
    """Return the minimum duration of several runs (s), because other load only increases it."""
    return min(_once(content, data) for _ in range(3))


def _once(content: Content, data: bytes) -> float:
    began = thread_time()
    content.fault(data, StepBudget())
    return thread_time() - began


@pytest.mark.parametrize("kind", MANY)
def test_protobuf_message_with_many_fields_is_not_validated_inline(kind: str, node_content: Content) -> None:
    data = MANY[kind]()

    assert steps_of(node_content.fault, data) > INLINE_STEPS
    assert seconds_of(node_content, data) < steps_of(node_content.fault, data) * _STEP_SECONDS
    assert node_content.fault(data, StepBudget()) is None
    began = thread_time()
    steps_of(node_content.fault, data)
    assert thread_time() - began < _MOST_COUNTING_SECONDS


@pytest.mark.parametrize("kind", FEW)
def test_large_protobuf_message_with_few_fields_is_validated_inline(kind: str, node_content: Content) -> None:
    data = FEW[kind]()

    assert node_content.fault(data, StepBudget()) is None
    assert steps_of(node_content.fault, data) <= INLINE_STEPS
    assert seconds_of(node_content, data) < steps_of(node_content.fault, data) * _STEP_SECONDS + _SLACK_SECONDS


def test_protobuf_cost_includes_indexed_messages() -> None:
    content = indexed_protobuf_content(descriptor_set())

    assert steps_of(content.fault, _FIRST_MESSAGE + MANY["a map's entries"]()) > INLINE_STEPS
    assert steps_of(content.fault, _FIRST_MESSAGE + FEW["a picture"]()) <= INLINE_STEPS
    assert steps_of(content.fault, b"\x63") <= INLINE_STEPS


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x0a\x00" * 100_000 + b"\x0a",
        length_delimited(6, bytes(2_000_000))[:-1],
        b"\x0f" * 2_000_000,
        b"\xff" * 2_000_000,
    ],
)
def test_malformed_protobuf_message_is_reported_as_malformed(damaged: bytes, node_content: Content) -> None:
    assert "cannot be read" in str(node_content.fault(damaged, StepBudget()))
    assert seconds_of(node_content, damaged) < steps_of(node_content.fault, damaged) * _STEP_SECONDS + _SLACK_SECONDS


def order_schema_with_lines(
    count: int, label: int, kind: int = FieldDescriptorProto.TYPE_INT64, first: int | None = None
) -> Content:
    """Return the schema of message Order {repeated Line lines = 1}, with `count` fields in Line. `first`: the label of
    the first field."""
    file = FileDescriptorProto(name="order.proto", package="p", syntax="proto2")
    order, line = file.message_type.add(name="Order"), file.message_type.add(name="Line")
    add(order, "lines", 1, FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.LABEL_REPEATED, ".p.Line")
    for i in range(count):
        add(line, f"f{i}", i + 1, kind, label if i or first is None else first)
    return protobuf_content(FileDescriptorSet(file=[file]).SerializeToString(), "p.Order")


OPTIONAL, REQUIRED = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REQUIRED


@pytest.mark.parametrize("fields", [20, 60])
def test_message_missing_many_required_fields_is_costly_and_explained_without_them(fields: int) -> None:
    content = order_schema_with_lines(fields, REQUIRED)
    data = b"\x0a\x00" * 260_000

    assert steps_of(content.fault, data) > INLINE_STEPS
    assert content.fault(data, StepBudget()) == "does not match its Protobuf schema: p.Order lacks required fields"
    began = thread_time()
    assert content.description(data, StepBudget()) is None
    assert thread_time() - began < _MOST_EXPLAINING_SECONDS
    few = length_delimited(1, b"".join(varint(i + 1 << 3) + b"\x01" for i in range(fields))) + b"\x0a\x00" * 10
    assert steps_of(content.fault, few) <= INLINE_STEPS
    assert (
        content.description(few, StepBudget())
        == "does not match its Protobuf schema: p.Order lacks the required field lines[1].f0"
    )


@pytest.mark.parametrize("fields", [1, 20, 300, 2000])
@pytest.mark.parametrize("kind", [FieldDescriptorProto.TYPE_INT64, FieldDescriptorProto.TYPE_STRING])
@pytest.mark.parametrize("first", [OPTIONAL, REQUIRED])
def test_unset_protobuf_fields_add_to_the_cost(fields: int, kind: int, first: int) -> None:
    content = order_schema_with_lines(fields, OPTIONAL, kind, first)
    set_first = b"\x08\x01" if kind == FieldDescriptorProto.TYPE_INT64 else b"\x0a\x00"
    data = length_delimited(1, set_first) * 3_000

    assert content.fault(data, StepBudget()) is None
    assert seconds_of(content, data) < steps_of(content.fault, data) * _STEP_SECONDS + _SLACK_SECONDS
    assert (steps_of(content.fault, data) > INLINE_STEPS) is (fields >= 300)


def test_protobuf_cost_includes_groups() -> None:
    file = FileDescriptorProto(name="group.proto", package="p", syntax="proto2")
    outer = file.message_type.add(name="Outer")
    group = outer.nested_type.add(name="G")
    for i in range(300):
        add(group, f"f{i}", i + 1, FieldDescriptorProto.TYPE_INT64, OPTIONAL)
    repeated = FieldDescriptorProto.LABEL_REPEATED
    add(outer, "g", 1, FieldDescriptorProto.TYPE_GROUP, repeated, ".p.Outer.G")
    content = protobuf_content(FileDescriptorSet(file=[file]).SerializeToString(), "p.Outer")
    data = b"\x0b\x08\x01\x0c" * 5_000

    assert content.fault(data, StepBudget()) is None
    assert steps_of(content.fault, data) > INLINE_STEPS
    assert seconds_of(content, data) < steps_of(content.fault, data) * _STEP_SECONDS + _SLACK_SECONDS


def test_protobuf_cost_includes_extensions() -> None:
    file = FileDescriptorProto(name="extended.proto", package="p", syntax="proto2")
    base, large = file.message_type.add(name="Base"), file.message_type.add(name="Large")
    base.extension_range.add(start=100, end=200)
    for i in range(1000):
        add(large, f"f{i}", i + 1, FieldDescriptorProto.TYPE_STRING, OPTIONAL)
    extension = file.extension.add(name="more", number=100, type_name=".p.Large", extendee=".p.Base")
    extension.type, extension.label = FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.LABEL_REPEATED
    content = protobuf_content(FileDescriptorSet(file=[file]).SerializeToString(), "p.Base")
    data = length_delimited(100, b"") * 3_000

    assert content.fault(data, StepBudget()) is None
    assert steps_of(content.fault, data) > INLINE_STEPS


def test_creates_only_referenced_protobuf_message_classes() -> None:
    file = FileDescriptorProto(name="many.proto", package="p", syntax="proto3")
    for i in range(2_000):
        add(file.message_type.add(name=f"M{i}"), "n", 1, FieldDescriptorProto.TYPE_INT64, OPTIONAL)
    content = indexed_protobuf_content(FileDescriptorSet(file=[file]).SerializeToString())

    assert content.record_name(b"\x02" + varint(1_999 << 1)) == "p.M1999"
    assert content.fault(b"\x02" + varint(1_999 << 1) + b"\x08\x01", StepBudget()) is None
    assert content.fault(b"\x02" + varint(2_000 << 1) + b"\x08\x01", StepBudget()) is not None


class RandomSchemas:
    """Random schemas of a few messages, and random data that are valid or almost valid."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.count = self.random.randint(1, 4)

    def content(self) -> Content:
        syntax = self.random.choice(["proto2", "proto3"])
        file = FileDescriptorProto(name="drawn.proto", package="p", syntax=syntax)
        kinds = FieldDescriptorProto
        for i in range(self.count):
            message = file.message_type.add(name=f"M{i}")
            for number in range(1, self.random.choice([2, 5, 15, 200])):
                kind = self.random.choice([kinds.TYPE_MESSAGE, kinds.TYPE_STRING, kinds.TYPE_INT64, kinds.TYPE_DOUBLE])
                labels = [kinds.LABEL_REPEATED, OPTIONAL, *([REQUIRED] if syntax == "proto2" else [])]
                inner = f".p.M{self.random.randrange(self.count)}" if kind == kinds.TYPE_MESSAGE else None
                label = self.random.choice(labels if inner is None else labels[:2])
                add(message, f"f{number}", number, kind, label, inner)
        return protobuf_content(FileDescriptorSet(file=[file]).SerializeToString(), "p.M0")

    def data(self, depth: int = 0) -> bytes:
        out = b""
        for _ in range(self.random.choice([0, 1, 5, 30])):
            number, kind = self.random.randint(1, 16), self.random.random()
            if kind < 0.6:
                inside = (
                    self.data(depth + 1) if depth < 5 and kind < 0.4 else self.random.choice([b"", b"a", b"\x01" * 99])
                )
                out += length_delimited(number, inside)
            elif kind < 0.9:
                out += varint(number << 3) + varint(self.random.getrandbits(self.random.choice([1, 7, 63])))
            else:
                out += varint(number << 3 | 1) + bytes(8)
            if len(out) > 200_000:
                break
        return out * (self.random.choice([1, 1, 30]) if depth == 0 else 1)


@pytest.mark.parametrize("seed", range(20))
def test_protobuf_validation_takes_no_longer_than_its_estimated_steps(seed: int) -> None:
    drawn = RandomSchemas(seed)
    content = drawn.content()
    for _ in range(8):
        data = drawn.data()
        assert seconds_of(content, data) < steps_of(content.fault, data) * _STEP_SECONDS + _SLACK_SECONDS, data[:200]
        began = thread_time()
        content.description(data, StepBudget())
        assert thread_time() - began < 0.02


# The verdicts of the library's two implementations, each in a separate process.
_VERDICTS = """
import sys
from random import Random
from google.protobuf.internal import api_implementation
assert api_implementation.Type() == sys.argv[1], api_implementation.Type()
from tests.validation.rules.protobuf.test_cost import descriptor_set, RandomSchemas
from sluicegate.validation.rules.protobuf.schema import protobuf_content
from sluicegate.validation.rules.rule import StepBudget
content = protobuf_content(descriptor_set(), "p.Node")
for data in (b"\\x1a\\x02\\xff\\xfe", b"\\x1a\\x03\\xed\\xa0\\x80", b"\\x1a\\x01a", b"\\x0a\\x04\\x1a\\x02\\xff\\xfe"):
    print(content.fault(data, StepBudget()))
for seed in range(6):
    random = Random(seed)
    drawn = RandomSchemas(seed)
    other = drawn.content()
    for _ in range(4):
        data = bytearray(drawn.data()[:2000])
        for _ in range(random.randint(0, 3)):
            if data:
                data[random.randrange(len(data))] = random.randrange(256)
        print(*(each.fault(bytes(data), StepBudget()) is None for each in (content, other)))
"""


def test_pure_python_protobuf_implementation_gives_the_same_verdicts() -> None:
    """Regression: with this library a text that was not UTF-8 raised UnicodeDecodeError, which closed the
    connection."""

    def verdicts_of_implementation(implementation: str) -> list[str]:
        environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation}
        arguments = [sys.executable, "-c", _VERDICTS, implementation]
        found = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        return found.stdout.splitlines()

    interpreted = verdicts_of_implementation("python")

    assert "cannot be read as p.Node" in interpreted[0]
    assert interpreted[2] == "None"
    assert interpreted == verdicts_of_implementation("upb")
