"""A contract's rules accept and reject records as the Open Data Contract Standard defines its keys."""

from pathlib import Path

import pytest

from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.rules.from_keys import parts_of
from tests.config.contracts.written import contract_with_fields, load_texts
from tests.validation.rules.records import record

LIST = "logicalType: array, items: {logicalType: object, properties: [{name: b, logicalType: string, required: true}]}"
MAP = "logicalType: map, map: {key: {logicalType: string}, value: {logicalType: integer, required: true}}"
DATE = "logicalType: date, logicalTypeOptions: {format: 'dd/MM/yyyy'}"
TIME = "logicalType: timestamp, logicalTypeOptions: {format: \"yyyy-MM-dd'T'HH:mm:ssZ\"}"


@pytest.mark.parametrize(
    ("keys", "good", "bad"),
    [
        ("logicalType: string", ['{"a":"x"}', '{"a":null}', "{}", '{"b":1}'], ['{"a":1}', "[]", "{", '"a"']),
        ("logicalType: string, required: true", ['{"a":""}'], ['{"a":null}', "{}"]),
        ("required: true", ['{"a":[]}'], ['{"a":null}', "{}"]),
        ("logicalType: string, physicalName: b, required: true", ['{"b":"x"}'], ['{"a":"x"}']),
        ("logicalType: string, logicalTypeOptions: {minLength: 2, maxLength: 3}", ['{"a":"xy"}'], ['{"a":"x"}']),
        ("logicalType: string, logicalTypeOptions: {pattern: '^[A-Z]+$'}", ['{"a":"AB"}', "{}"], ['{"a":"ab"}']),
        ("logicalType: string, logicalTypeOptions: {format: email}", ['{"a":"a@b.org"}'], ['{"a":"a"}']),
        ("logicalType: string, logicalTypeOptions: {format: binary}", ['{"a":"a"}'], ['{"a":1}']),
        ("logicalType: string, enum: [{value: x}, {value: y}]", ['{"a":"x"}', '{"a":null}'], ['{"a":"z"}']),
        ("logicalType: integer, logicalTypeOptions: {format: u8}", ['{"a":255}', '{"a":0}'], ['{"a":256}', '{"a":-1}']),
        ("logicalType: integer", ['{"a":1}'], ['{"a":1.5}', '{"a":"1"}']),
        ("logicalType: number, logicalTypeOptions: {exclusiveMinimum: 0, maximum: 2}", ['{"a":2}'], ['{"a":0}']),
        ("logicalType: number, logicalTypeOptions: {multipleOf: 5}", ['{"a":-10}'], ['{"a":7}']),
        ("logicalType: boolean", ['{"a":true}'], ['{"a":"true"}']),
        ("logicalType: date", ['{"a":"2026-11-28"}'], ['{"a":"28.11.2026"}', '{"a":"2026-13-01"}']),
        ("logicalType: timestamp", ['{"a":"2026-11-28T10:00:00.5Z"}'], ['{"a":"2026-11-28"}', '{"a":5}']),
        ("logicalType: timestamp, physicalType: long", ['{"a":1795000000000}'], ['{"a":"2026-11-28T10:00:00Z"}']),
        ("logicalType: time", ['{"a":"10:00:00"}'], ['{"a":"10"}']),
        (DATE, ['{"a":"28/11/2026"}'], ['{"a":"2026-11-28"}']),
        (TIME, ['{"a":"2026-11-28T10:00:00Z"}', '{"a":"2026-11-28T10:00:00+0100"}'], ['{"a":"2026-11-28 10:00:00Z"}']),
        ("logicalType: object, properties: [{name: b, logicalType: string, required: true}]", ['{"a":{"b":"x"}}', "{}"],
         ['{"a":{}}', '{"a":[]}']),
        ("logicalType: object, logicalTypeOptions: {required: [c], maxProperties: 1}", ['{"a":{"c":1}}'],
         ['{"a":{}}', '{"a":{"c":1,"d":2}}']),
        (LIST, ['{"a":[{"b":"x"}]}', '{"a":[]}'], ['{"a":[{}]}', '{"a":{}}']),
        ("logicalType: array, logicalTypeOptions: {uniqueItems: true, minItems: 1}", ['{"a":[1]}'],
         ['{"a":[]}', '{"a":[1,1]}']),
        (MAP, ['{"a":{"x":1}}'], ['{"a":{"x":"1"}}', '{"a":{"x":null}}']),
        ("logicalType: vector, logicalTypeOptions: {dimensions: 2}", ['{"a":[1,0.5]}'], ['{"a":[1]}', '{"a":["x",1]}']),
        ("quality: [{metric: nullValues, mustBe: 0}]", ['{"a":0}'], ['{"a":null}', "{}"]),
        ("quality: [{metric: nullValues, mustBeLessOrEqualTo: 0, unit: percent}]", ['{"a":0}'], ["{}"]),
        ("quality: [{metric: nullValues, mustBeLessThan: 1}]", ['{"a":0}'], ["{}"]),
        ("quality: [{metric: nullValues, mustBeLessThan: 1, unit: percent}]", ["{}"], []),
        ("quality: [{metric: nullValues, mustBeGreaterThan: 1}]", ["{}"], []),
        ("quality: [{metric: missingValues, mustBe: 0, arguments: {missingValues: [null, '', n/a]}}]", ['{"a":"x"}'],
         ["{}", '{"a":""}', '{"a":"n/a"}']),
        ("quality: [{metric: missingValues, mustBe: 0, arguments: {missingValues: ['']}}]", ["{}"], ['{"a":""}']),
        ("quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: [1, x]}}]",
         ['{"a":1}', '{"a":"1"}', '{"a":null}'], ['{"a":2}']),
        ("quality: [{metric: invalidValues, mustBe: 0, arguments: {pattern: '^x'}}]", ['{"a":"xy"}', "{}"],
         ['{"a":"yx"}']),
        ("quality: [{metric: duplicateValues, mustBe: 0}]", ['{"a":1}'], []),
    ],
)  # fmt: skip
def test_verdicts_on_records_follow_the_contract_standard(
    keys: str, good: list[str], bad: list[str], tmp_path: Path
) -> None:
    loaded = load_texts(tmp_path, "contracts: c.odcs.yaml\n", c_odcs=contract_with_fields(f"[{{name: a, {keys}}}]"))
    maker = SchemaRules({})
    rules = [part for rule in loaded.config.topics[0].rules or () for part in parts_of(rule, maker)]

    def faults_of_value(value: str) -> list[str]:
        return [fault for rule in rules if (fault := rule.fault(record(value.encode()))) is not None]

    assert [value for value in good if faults_of_value(value)] == []
    assert [value for value in bad if not faults_of_value(value)] == []


def test_contract_rule_with_severity_warning_is_observed(tmp_path: Path) -> None:
    quality = "quality: [{id: q, metric: nullValues, mustBe: 0, severity: warning}]"
    loaded = load_texts(tmp_path, "contracts: c.odcs.yaml\n", c_odcs=contract_with_fields(f"[{{name: a, {quality}}}]"))

    assert [(rule.name, rule.mode) for rule in loaded.config.topics[0].rules or ()] == [
        ("contract.schema", "reject"),
        ("contract.q", "observe"),
    ]
