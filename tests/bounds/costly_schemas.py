"""Schemas that make a few bytes expensive to validate. Any user of a registry can register them."""

import json
from functools import cache
from typing import Any

MANY_WORDS = [f"word-{i:06d}-" + "x" * 60 for i in range(5_000)]


def json_schema_with_long_enum(words: int) -> str:
    return json.dumps({"type": "array", "items": {"enum": MANY_WORDS[:words]}})


def schema_with_variants(variants: int) -> str:
    made = [
        {"properties": {"kind": {"const": f"k{i}"}, "items": {"items": {"type": "integer", "minimum": i}}}}
        for i in range(variants)
    ]
    return json.dumps({"type": "array", "items": {"oneOf": made}})


def avro_chain(depth: int) -> str:
    """Return a record schema that contains the next one twice, `depth` levels deep."""
    inner: Any = {"type": "record", "name": f"R{depth}", "fields": []}
    for i in reversed(range(depth)):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{i + 1}"}]
        inner = {"type": "record", "name": f"R{i}", "fields": fields}
    return json.dumps(inner)


def all_of_chain_schema(depth: int) -> str:
    """Return a JSON Schema of definitions that refer twice to the next one, `depth` levels deep."""
    definitions: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(depth)
    }
    definitions[f"d{depth}"] = {"type": "integer"}
    return json.dumps({"$ref": "#/$defs/d0", "$defs": definitions})


@cache
def json_schema_with_patterns(count: int, salt: int = 0) -> str:
    """Return a JSON Schema of `count` properties, each with its own pattern."""
    names = {f"p{i}": {"type": "string", "pattern": f"^[a-z]{{1,{20 + i % 20}}}-{salt}-{i}$"} for i in range(count)}
    return json.dumps({"type": "object", "properties": names})


@cache
def proto_with_messages(count: int) -> str:
    return 'syntax = "proto3";\n' + "\n".join(f"message M{i} {{ string f = 1; }}" for i in range(count))


@cache
def wide_schema(salt: int) -> str:
    """Return a JSON Schema of 241 kB; different salts give different schemas."""
    names = {f"property-{salt}-{i:05d}": {"type": "string", "maxLength": i} for i in range(3_900)}
    return json.dumps({"type": "object", "properties": names})
