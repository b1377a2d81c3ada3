"""A contract's statements about one record become rules, or are reported as having no effect."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.config.contracts.written import ORDERS, contract_with_fields, load_texts, problems_of_texts

CONTRACT = "contracts: c.odcs.yaml\n"


def accepts_each_value(folder: Path, contract: str, *values: Any) -> list[bool]:
    """Return whether all rules of the contract of `t` accept each value."""
    rules = load_texts(folder, CONTRACT, c_odcs=contract).config.topics[0].rules or ()
    texts = [rule.value.schema_.text for rule in rules if rule.value is not None and rule.value.schema_ is not None]
    schemas = [jsonschema_rs.Draft202012Validator(json.loads(text)) for text in texts if text is not None]
    return [all(schema.is_valid(value) for schema in schemas) for value in values]


def unchecked_statements(folder: Path, contract: str, topic: str = "t") -> list[str]:
    return [str(each) for each in load_texts(folder, CONTRACT, c_odcs=contract).source.contracts[topic].unchecked]


@pytest.mark.parametrize("version", ["v3.0.0", "v3.0.2"])
def test_contract_version_3_0_has_boolean_exclusive_bounds(version: str, tmp_path: Path) -> None:
    options = "{minimum: 0, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false}"
    contract = contract_with_fields(f"[{{name: a, logicalType: integer, logicalTypeOptions: {options}}}]")

    found = accepts_each_value(
        tmp_path, contract.replace("v3.1.0", version), *({"a": number} for number in (0, 1, 5, 6))
    )

    assert found == [False, True, True, False]


def test_rejects_boolean_exclusive_bound_after_version_3_0_or_without_minimum(tmp_path: Path) -> None:
    later = contract_with_fields(
        "[{name: a, logicalType: integer, logicalTypeOptions: {minimum: 0, exclusiveMinimum: true}}]"
    )
    alone = contract_with_fields("[{name: a, logicalType: integer, logicalTypeOptions: {exclusiveMinimum: true}}]")

    for contract in (later, alone.replace("v3.1.0", "v3.0.2")):
        (found,) = problems_of_texts(tmp_path, CONTRACT, c_odcs=contract)
        assert "exclusiveMinimum" in found and 'true is not of type "number"' in found


def contract_with_quality_check(metric: str, arguments: str, kind: str = "string") -> str:
    check = f"{{id: q, metric: {metric}, mustBe: 0, arguments: {arguments}}}"
    return contract_with_fields(f"[{{name: a, logicalType: {kind}, quality: [{check}]}}]")


@pytest.mark.parametrize(
    ("kind", "values", "good", "bad"),
    [
        ("integer", "['1', '2']", [1, 2, 1.0, None], [3]),
        ("string", "[1, 2.5]", ["1", "2.5", None], ["1.0", "3"]),
        ("number", "['2.5', 7]", [2.5, 7, 7.0], [2, 8]),
        ("boolean", "['true']", [True, None], [False]),
        ("string", "[true]", ["true"], ["false"]),
        ("string", "['NaN', 'Infinity', '1e999']", ["NaN", "Infinity", "1e999"], ["x"]),
    ],
)
def test_valid_values_of_a_contract_are_compared_as_text(
    kind: str, values: str, good: list[Any], bad: list[Any], tmp_path: Path
) -> None:
    contract = contract_with_quality_check("invalidValues", f"{{validValues: {values}}}", kind)

    assert accepts_each_value(tmp_path, contract, *({"a": each} for each in good)) == [True] * len(good)
    assert accepts_each_value(tmp_path, contract, *({"a": each} for each in bad)) == [False] * len(bad)


def test_missing_values_of_a_contract_are_compared_as_text(tmp_path: Path) -> None:
    contract = contract_with_quality_check("missingValues", "{missingValues: ['-1', null]}", "integer")

    assert accepts_each_value(tmp_path, contract, {"a": 1}, {"a": -1}, {"a": None}, {}) == [True, False, False, False]


def test_pattern_on_a_number_is_checked_only_by_the_audit(tmp_path: Path) -> None:
    contract = contract_with_quality_check("invalidValues", "{pattern: '^[0-9]$'}", "integer")

    assert accepts_each_value(tmp_path, contract, {"a": 12}) == [True]
    assert [each.name for each in load_texts(tmp_path, CONTRACT, c_odcs=contract).source.contracts["t"].stored] == ["q"]


def test_field_of_a_missing_or_null_object_counts_as_null(tmp_path: Path) -> None:
    check = "[{id: q, metric: nullValues, mustBe: 0}]"
    inner = f"{{name: b, logicalType: object, properties: [{{name: c, logicalType: string, quality: {check}}}]}}"
    contract = contract_with_fields(f"[{{name: a, logicalType: object, properties: [{inner}]}}]")
    values: list[Any] = [{"a": {"b": {"c": "x"}}}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}, {"a": {"b": None}}]

    assert accepts_each_value(tmp_path, contract, *values, {"a": {}}, {"a": None}, {}) == [True] + [False] * 6


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("primaryKey: true", "primaryKey of a: keys are not compared; write required and unique"),
        (
            "relationships: [{type: foreignKey, to: other.id}]",
            "relationships of a: records of other topics are not read",
        ),
        ("physicalType: varchar(10)", "length in varchar(10) of a: physical types have no rule"),
        ("physicalType: 'decimal( 10, 2)'", "length in decimal( 10, 2) of a: physical types have no rule"),
    ],
)
def test_reports_unchecked_contract_property_statement(statement: str, named: str, tmp_path: Path) -> None:
    (found,) = unchecked_statements(tmp_path, contract_with_fields(f"[{{name: a, logicalType: string, {statement}}}]"))

    assert found.startswith(named)


def test_reports_number_format_as_unchecked(tmp_path: Path) -> None:
    contract = contract_with_fields("[{name: a, logicalType: number, logicalTypeOptions: {format: f32}}]")

    assert unchecked_statements(tmp_path, contract) == ["format f32 of a: JSON has one type"]


def test_reports_unchecked_quality_of_list_and_map_items(tmp_path: Path) -> None:
    check = "quality: [{metric: nullValues, mustBe: 0}]"
    inner = f"{{name: c, logicalType: string, {check}}}"
    item = f"{{name: i, logicalType: object, {check}, properties: [{inner}]}}"
    key = "{name: k, logicalType: string}"
    contract = contract_with_fields(
        f"[{{name: a, logicalType: array, items: {item}}},"
        f" {{name: m, logicalType: map, map: {{key: {key}, value: {item}}}}},"
        f" {{name: n, logicalType: array, items: {{name: l, logicalType: array, items: {item}}}}}]"
    )

    assert unchecked_statements(tmp_path, contract) == [
        f"{name}: quality of the items of a list or map is not read"
        for name in (
            "a.items.nullValues",
            "a.items.c.nullValues",
            "m.value.nullValues",
            "m.value.c.nullValues",
            "n.items.items.nullValues",
            "n.items.items.c.nullValues",
        )
    ]


@pytest.mark.parametrize("status", ["draft", "retired"])
def test_reports_contract_status_and_second_server_as_unchecked(status: str, tmp_path: Path) -> None:
    contract = contract_with_fields("[{name: a, logicalType: string}]").replace("status: active", f"status: {status}")
    contract = contract.replace("format: json}]", "format: json}, {server: dr, type: kafka, host: h, format: avro}]")

    assert unchecked_statements(tmp_path, contract) == [
        f"status {status}: the rules apply in every status; remove the file to end them",
        "server dr: the first Kafka server's format applies, because all servers have the topic",
    ]


def test_reports_schema_with_only_authoritative_definitions_as_unchecked(tmp_path: Path) -> None:
    head, _, _ = ORDERS.partition("schema:")
    contract = f"{head}schema:\n  - name: t\n    authoritativeDefinitions: [{{type: schema, url: 'http://h/t.avsc'}}]\n"

    assert unchecked_statements(tmp_path, contract) == [
        "schema of t: the schema has no properties; schemas that authoritativeDefinitions name are not read"
    ]


def test_hints_list_at_most_fifty_unchecked_statements(tmp_path: Path) -> None:
    properties = ", ".join(f"{{name: f{i}, logicalType: string, primaryKey: true}}" for i in range(60))

    hints = load_texts(tmp_path, CONTRACT, c_odcs=contract_with_fields(f"[{properties}]")).hints

    assert len(hints) == 51
    assert "c.odcs.yaml:11: contract of t: not checked: primaryKey of f0: keys are not compared" in hints[0]
    assert hints[-1].startswith("10 more statements of contracts are not checked")
