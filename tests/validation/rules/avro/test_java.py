"""Every Avro schema that Java can parse is usable, and accepts the data that Java writes with it."""

import json
import random
from typing import Any

import pytest

from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.rule import StepBudget
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from tests.oracle.java_schemas import AvroInJava, avro_in_java


def avro_field(kind: Any, **more: Any) -> dict[str, Any]:
    return {"field": {"type": kind, **more}}


def avro_record(*kinds: Any, **more: Any) -> dict[str, Any]:
    """Return a record schema with fields of these types; see `field` for a field with further attributes."""
    given = [kind["field"] if isinstance(kind, dict) and "field" in kind else {"type": kind} for kind in kinds]
    return {"type": "record", "name": "R", "fields": [{"name": f"f{i}", **one} for i, one in enumerate(given)], **more}


def avro_decimal(**more: Any) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", **more}


NOT_APPLIED = {
    "scale beyond precision": avro_decimal(precision=64, scale=127),
    "precision as text": avro_decimal(precision="9", scale="2"),
    "no precision": avro_decimal(),
    "negative scale": avro_decimal(precision=4, scale=-1),
    "precision 0": avro_decimal(precision=0),
    "huge precision": avro_decimal(precision=10**12),
    "fractional scale": avro_decimal(precision=4, scale=1.5),
    "null scale": avro_decimal(precision=4, scale=None),
    "fixed too small": {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 30},
    "decimal of a string": {"type": "string", "logicalType": "decimal", "precision": 4},
    "unknown logical type": {"type": "string", "logicalType": "no-such-type"},
    "logical type that is no text": {"type": "string", "logicalType": 7},
    "uuid of an int": {"type": "int", "logicalType": "uuid"},
    "date of a string": {"type": "string", "logicalType": "date"},
    "duration of 3 bytes": {"type": "fixed", "name": "F", "size": 3, "logicalType": "duration"},
}
DEFAULTS: list[tuple[Any, Any]] = [
    ({"type": "double"}, 0),
    ({"type": "string"}, None),
    ("string", 7),
    ("long", 1.0),
    ("int", 2**40),
    ("int", "7"),
    ("boolean", "false"),
    ("null", "null"),
    ("float", "NaN"),
    ("bytes", [1, 2]),
    ({"type": "array", "items": "int"}, {}),
    ({"type": "array", "items": "int"}, "[]"),
    ({"type": "map", "values": "int"}, []),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
    ({"type": "fixed", "name": "F", "size": 2}, "toolong"),
    (["null", "string"], "a"),
    (["string", "null"], None),
    (["int", "string"], 1.5),
    (avro_record("int", name="I"), {}),
]
NAMES = {
    "symbols beyond ASCII": {"type": "enum", "name": "E", "symbols": ["GRÜN", "красный", "赤"]},
    "names beyond ASCII": avro_record("int", name="Größe", namespace="de.straße"),
    "field beyond ASCII": avro_record(avro_field("int", name="größe")),
    "full name": avro_record("int", name="a.b.C", namespace="ignored"),
    "empty namespace": avro_record("int", name="C", namespace=""),
    "null namespace": avro_record("int", name="C", namespace=None),
    "namespace that is no text": avro_record("int", namespace=7),
    "aliases": avro_record(avro_field("int", aliases=["old", "x y"]), aliases=["Old", "other.Old"]),
    "doc that is no text": avro_record(avro_field("int", doc=7), doc=["a"]),
    "order": avro_record(avro_field("int", order="ignore"), avro_field("int", order="DESCENDING")),
    "other properties": avro_record(
        avro_field("int", **{"connect.index": 1, "x": {}}), **{"connect.name": "a", "y": [1]}
    ),
    "no fields": avro_record(),
    "null field": avro_record("null", avro_field("null", default=0)),
    "empty enum": ["int", {"type": "enum", "name": "E", "symbols": []}],
    "enum default": {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
    "fixed of no bytes": {"type": "fixed", "name": "F", "size": 0},
    "an error": {**avro_record("int"), "type": "error"},
    "inherited namespace": avro_record(avro_record("int", name="I"), "I", "n.I", namespace="n"),
    "null namespace within another": avro_record(avro_record("int", name="I", namespace=""), "I", namespace="n"),
    "names of two namespaces": avro_record(
        avro_record("int", name="m.I"), avro_record("long", name="I"), "I", "m.I", namespace="n"
    ),
    "used before it is defined": avro_record(["null", "I"], avro_record("int", name="I")),
    "used before, in a namespace": avro_record("I", avro_record("int", name="I"), namespace="n"),
    "itself": avro_record(["null", "R"], {"type": "array", "items": "R"}, {"type": "map", "values": {"type": "R"}}),
    "as a primitive in a namespace": avro_record("int", name="string", namespace="n"),
    "a name within itself": avro_record(avro_record("int"), "R"),
    "another of its name within itself": avro_record(avro_record("int"), avro_record("long")),
    "fixed twice": avro_record({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 1}),
    "plain union": ["null", "int", {"type": "map", "values": "string"}],
    "empty union": avro_record({"type": "array", "items": []}),
    "array": {"type": "array", "items": {"type": "string", "avro.java.string": "String"}},
}
TEXTS = {
    "comment before": '/* Orders\n "1" */ // more\n"int"',
    "comments within": '{"type": // the kind\r\n "map", /**/"values": {"type": "string", "doc": "no // comment /* "}}',
    "white space": ' \n\t"int"\n ',
    "a key twice": '{"type": "string", "type": "int"}',
    "escapes": '{"type": "enum", "name": "E", "symbols": ["\\u0041"], "doc": "\\ud800"}',
}
ROWS: dict[str, str] = {
    **{f"logical type: {name}": json.dumps(schema) for name, schema in NOT_APPLIED.items()},
    **{f"default: {what!r}": json.dumps(avro_record(avro_field(kind, default=what))) for kind, what in DEFAULTS},
    **{f"names: {name}": json.dumps(schema, ensure_ascii=False) for name, schema in NAMES.items()},
    **{f"text: {name}": text for name, text in TEXTS.items()},
}


@pytest.fixture(scope="module")
def java_results_of_rows() -> dict[str, AvroInJava]:
    return dict(zip(ROWS, avro_in_java(ROWS.values()), strict=True))


@pytest.mark.parametrize("row", ROWS)
def test_accepts_avro_schemas_and_data_that_java_accepts(row: str, java_results_of_rows: dict[str, AvroInJava]) -> None:
    java = java_results_of_rows[row]

    assert java.error is None
    content = avro_content(ROWS[row])
    assert content.record_name(b"") in (java.name, None)
    assert [content.fault(datum, StepBudget()) for datum in java.data] == [None] * len(java.data)


class RandomSchema:
    """Random schemas with names in several namespaces, some of which are used before or without their definition."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._names: list[str] = []

    def schema(self, depth: int = 0) -> Any:
        kind, chance = self._chance.random(), self._chance
        if kind < 0.25 or depth > 4:
            return chance.choice(["null", "int", "string", "bytes", "double", {"type": "long", "logicalType": "x"}])
        if kind < 0.4:
            return chance.choice([*self._names, "A", "B", "n.A", "m.B"])
        if kind < 0.5:
            return {"type": chance.choice(["array", "map"]), "items": "int", "values": self.schema(depth + 1)}
        if kind < 0.6:
            return ["null", self.schema(depth + 1)]
        named: dict[str, Any] = {"name": chance.choice(["A", "B", "C", "Ö", "n.A", "m.B", ".D"])}
        if chance.random() < 0.4:
            named["namespace"] = chance.choice(["n", "m", "", None])
        if kind < 0.7:
            return named | {"type": "enum", "symbols": ["X", "Ä"], "default": chance.choice(["X", None])}
        if kind < 0.75:
            return named | {"type": "fixed", "size": chance.randrange(4)}
        self._names.append(named["name"])
        fields = [
            {"name": f"f{i}", "type": self.schema(depth + 1), "default": chance.choice([None, 0, "", [], {}])}
            for i in range(chance.randrange(4))
        ]
        return named | {"type": "record", "fields": fields}


def test_accepts_random_avro_schemas_that_java_accepts() -> None:
    drawn = [json.dumps(RandomSchema(seed).schema()) for seed in range(3_000)]
    used = 0

    for text, java in zip(drawn, avro_in_java(drawn), strict=True):
        if java.error is not None:
            continue
        content = avro_content(text)
        used += 1
        assert content.record_name(b"") in (java.name, None), text
        for datum in java.data:
            assert content.fault(datum, StepBudget()) is None, text
            assert not datum or content.fault(datum[:-1], StepBudget()) is not None, text
    assert used > 1_000


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "fixed", "name": "F", "size": "4"}, "no size"),
        ({"type": "fixed", "name": "F", "size": -1}, "no size"),
        ({"type": "enum", "name": "E"}, "no symbols"),
        ({"type": "record", "name": "R"}, "no fields"),
        (avro_record(avro_field("int", name=7)), "no name"),
        (avro_record(None), "neither a name"),
        ({"type": "array"}, "neither a name"),
        (avro_record("X", namespace="n"), "the schema does not define the type X"),
        ({"type": "record", "name": "int", "fields": []}, "the name int"),
        ({"type": "record", "fields": []}, "has no name"),
    ],
)
def test_rejects_avro_schemas_that_java_rejects_with_the_reason(schema: Any, words: str) -> None:
    (java,) = avro_in_java([json.dumps(schema)])

    assert java.error is not None
    with pytest.raises(SchemaUnusable, match=words):
        avro_content(json.dumps(schema))
