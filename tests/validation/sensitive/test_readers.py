"""Readers of masked values find the original values, except that the named fields are replaced.

The readers are json, fastavro and Google's Protobuf. The values are every hostile value and random values.
"""

import hmac
import io
import json
from functools import cache
from hashlib import sha256
from random import Random
from typing import Any

import fastavro
import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from sluicegate.proxy.rules_process.protoc import OWN_NAME, descriptor_set_of
from sluicegate.validation.rules.protobuf.indexed_schema import indexed_protobuf_content
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, path_of, tree_of
from sluicegate.validation.sensitive.schema_values import SchemaValues
from tests.bounds.hostile_values import FIELDS, HOSTILE_VALUES, LONGEST, Format, HostileValue
from tests.validation.rules.records import record
from tests.validation.sensitive.places import KEY, VALUES, SingleSchema, protobuf_content, schema_file

Paths = list[tuple[str, tuple[str, ...]]]
"""The rest of each path at a place, with its action."""
PATHS: Paths = [(action, path_of(path)) for action, paths in FIELDS.items() for path in paths]


def expected_value(value: Any, paths: Paths) -> Any:
    """Return what a reader finds after masking."""
    if isinstance(value, list):
        return [expected_value(each, paths) for each in value]
    if isinstance(value, dict):
        found = {}
        for name, inner in value.items():
            left = [(action, path[1:]) for action, path in paths if path and path[0] in ("*", name.strip("[]"))]
            found[name] = expected_value(inner, left)
        return found
    here = [action for action, path in paths if not path]
    if value is None or not here:
        return value
    return "***" if here[0] == "mask" else hmac.new(KEY, value.encode("utf-8", "surrogatepass"), sha256).hexdigest()


@cache
def avro_schema() -> Any:
    return fastavro.parse_schema(json.loads(schema_file(Format.AVRO).read_text()))


def read(format: Format, data: bytes) -> Any:
    if format is Format.JSON:
        return json.loads(data, parse_int=str)
    if format is Format.AVRO:
        stream = io.BytesIO(data)
        found = fastavro.schemaless_reader(stream, avro_schema())
        assert stream.read() == b""
        return found
    message = protobuf_content().named(b"\0")[0][0]._new.FromString(data)
    return MessageToDict(message, preserving_proto_field_name=True)


def mask_data(format: Format, data: bytes) -> bytes:
    found = VALUES[format]().masked(record(data), lambda _work: None, LONGEST)
    return data if found is None else found.data


READABLE = [each for each in HOSTILE_VALUES if each.is_masked is not None and "2^62" not in each.name]


SIZES = [(each, size) for each in READABLE for size in ((3_500, 70_000) if each.is_long else (3_500,))]
"""Sizes, including sizes of more than one piece if the parts of a value may be that long."""


@pytest.mark.parametrize(("hostile", "size"), SIZES, ids=[f"{each.name}, {size}" for each, size in SIZES])
def test_masking_changes_only_the_configured_fields_for_readers(hostile: HostileValue, size: int) -> None:
    data = hostile.make(size)
    before = read(hostile.format, data)

    found = mask_data(hostile.format, data)

    wanted = expected_value(before, PATHS)
    assert read(hostile.format, found) == wanted
    assert (found != data) is hostile.is_masked


def _person(random: Random, depth: int = 0) -> dict[str, Any]:
    def random_text() -> str | None:
        return random.choice([None, "", "a", "\u00e9" * 70, "\U0001f600" * 4_000, "x" * 140])

    return {
        "mail": random_text(),
        "key": random_text(),
        "mails": [random_text() for _ in range(random.randrange(4))],
        "by_name": {random.choice("ab\u20ac") * i: random_text() for i in range(random.randrange(4))},
        "inner": [None if random.random() < 0.3 else _person(random, depth + 1) for _ in range(random.randrange(3))]
        if depth < 4
        else [],
        "nothing": [None] * random.randrange(3),
        "others": [random.choice([None, 1 << 40, 0.5, True, "s", "RED"]) for _ in range(random.randrange(3))],
    }


def test_masking_random_avro_changes_only_the_configured_fields() -> None:
    random = Random(58)
    for _ in range(150):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, avro_schema(), _person(random))
        data = out.getvalue()

        assert read(Format.AVRO, mask_data(Format.AVRO, data)) == expected_value(read(Format.AVRO, data), PATHS)


def test_masking_random_protobuf_changes_only_the_configured_fields() -> None:
    random, new = Random(58), protobuf_content().named(b"\0")[0][0]._new

    def fill_person(person: Any, depth: int) -> None:
        texts = ["", "a", "\u00e9" * 70, "\U0001f600" * 4_000]
        for name in random.sample(["mail", "key", "note"], 2):
            setattr(person, name, random.choice(texts))
        person.mails.extend(random.choices(texts, k=random.randrange(3)))
        person.numbers.extend([1, -1])
        person.packed.mail = random.choice(texts)
        person.by_name[random.choice(texts)] = random.choice(texts)
        person.raw = b"\xff" * random.randrange(200)
        if depth < 3:
            fill_person(person.by_number[random.choice([0, -5, 1 << 40])], depth + 1)
            for _ in range(random.randrange(3)):
                fill_person(person.inner.add(), depth + 1)

    for _ in range(60):
        person = new()
        fill_person(person, 0)
        data = person.SerializeToString()

        assert read(Format.PROTOBUF, mask_data(Format.PROTOBUF, data)) == expected_value(
            read(Format.PROTOBUF, data), PATHS
        )


KEY_TYPES = [
    "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",
    "string",
]  # fmt: skip


@cache
def maps_content() -> Any:
    maps = "".join(f"map<{kind}, string> m{kind} = {i + 1};" for i, kind in enumerate(KEY_TYPES))
    return indexed_protobuf_content(descriptor_set_of(OWN_NAME, f'syntax = "proto3"; message M {{ {maps} }}', {}))


@pytest.mark.parametrize("kind", KEY_TYPES)
def test_masking_uses_the_last_key_of_a_map_entry_as_protobuf_does(kind: str) -> None:
    """Random entries: other wire types, several keys, and varints that are longer than the type."""
    random = Random(kind)
    field = maps_content().named(b"\0")[0][0].descriptor.fields_by_name[f"m{kind}"]
    tag = bytes([field.number << 3 | 2])
    read_entry = GetMessageClass(field.message_type).FromString
    taken = 0
    for _ in range(300):
        varints = [b"\0", b"\1", b"\x7f", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10", b"\xff" * 9 + b"\1"]
        keys = [
            random.choice(
                [b"\x08" + random.choice(varints), b"\x09" + random.randbytes(8), b"\x0d" + random.randbytes(4)]
            )
            if random.random() < 0.8
            else b"\x0a\x02" + random.choice([b"ab", b"\xc3\xa9"])
            for _ in range(random.randrange(3))
        ]
        parts = [*keys, b"\x12\x01v", b"\x18\x05"]
        random.shuffle(parts)
        entry = b"".join(parts)
        data = tag + bytes([len(entry)]) + entry
        key = read_entry(entry).key
        name = str(key).lower() if kind == "bool" else str(key)
        policy = FieldPolicy("s", ((f"m{kind}", name),), Action.MASK, "***")
        values = SchemaValues([policy], (tree_of([policy]),), SingleSchema(maps_content(), b"\0"))

        found = values.masked(record(data), lambda _work: None, LONGEST)

        assert found is not None
        assert found.data[:2] == tag + bytes([len(found.data) - 2])
        changed = read_entry(found.data[2:])
        assert (changed.key, changed.value) == (key, "***")
        taken += bool(keys)
    assert taken > 100
